// Command gateway is an HTTP server that gives each user who signs in a gift, once. While it processes a request of a user it refuses
// further ones at once, and so do all other gateways:
//
//	curl -X POST localhost:8080/sign-in/ada
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

const (
	lease   = time.Second
	backend = 2 * time.Second // how long the service behind the gateway takes
)

func main() {
	prefix := flag.String("prefix", "gateway:", "prefix of the keys in Redis")
	listen := flag.String("listen", "localhost:8080", "address of the HTTP server")
	recipe := flag.Bool("recipe", false, "lock with SET and an expiry, as in recipe.go")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *prefix, *listen, *recipe); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, prefix, listen string, recipe bool) error {
	options, err := redis.ParseURL(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379"))
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	defer client.Close()
	locks, err := holdfast.New(client, holdfast.WithLease(lease))
	if err != nil {
		return err
	}
	defer locks.Close(context.Background())

	g := &gateway{client: client, prefix: prefix}
	g.alone = func(ctx context.Context, name string, fn func(context.Context) error) error {
		lease, err := locks.Mutex(name).TryLock(ctx)
		if err != nil {
			return err
		}
		defer lease.Unlock(ctx)
		return fn(lease.Context(ctx))
	}
	if recipe {
		g.alone = aloneByRecipe(client)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /sign-in/{user}", g.signIn)
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Println("listens on", listener.Addr())
	server := &http.Server{Handler: mux}
	stopped := make(chan error, 1)
	defer context.AfterFunc(ctx, func() { stopped <- server.Shutdown(context.Background()) })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped // the requests under way have ended
}

type gateway struct {
	client *redis.Client
	prefix string
	alone  func(ctx context.Context, name string, fn func(context.Context) error) error // under the lock of that name, without waiting for it
}

func (g *gateway) signIn(w http.ResponseWriter, r *http.Request) {
	user := r.PathValue("user")
	err := g.alone(r.Context(), g.prefix+user, func(ctx context.Context) error { return g.give(ctx, user) })
	switch {
	case errors.Is(err, holdfast.ErrNotAcquired):
		http.Error(w, "your last request is still being processed", http.StatusTooManyRequests)
	case errors.Is(err, holdfast.ErrUnavailable): // the lock may or may not be held: refuse
		http.Error(w, "try later", http.StatusServiceUnavailable)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// give gives the user a gift, unless the user has it.
func (g *gateway) give(ctx context.Context, user string) error {
	n, err := g.client.LLen(ctx, g.prefix+"gifts:"+user).Result()
	if err != nil || n > 0 {
		return err
	}
	select {
	case <-time.After(backend):
	case <-ctx.Done(): // the lease is lost, or the user has gone
		return context.Cause(ctx)
	}
	if err := g.client.RPush(ctx, g.prefix+"gifts:"+user, "a teapot").Err(); err != nil {
		return err
	}
	fmt.Printf("gave %s a gift\n", user)
	return nil
}
