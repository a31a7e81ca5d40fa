// Command recipe is the gateway with the recipe of most tutorials: SET with an expiry and NX, then DEL. A request that takes longer
// than the expiry goes on without the lock, and the next one of the same user is let in.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	expiry  = time.Second
	backend = 2 * time.Second // how long the service behind the gateway takes
)

func main() {
	prefix := flag.String("prefix", "gateway:", "prefix of the keys in Redis")
	listen := flag.String("listen", "localhost:8080", "address of the HTTP server")
	flag.Parse()
	if err := run(*prefix, *listen); err != nil {
		log.Fatal(err)
	}
}

func run(prefix, listen string) error {
	options, err := redis.ParseURL(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379"))
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	defer client.Close()
	g := &gateway{client: client, prefix: prefix}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /sign-in/{user}", g.signIn)
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Println("listens on", listener.Addr())
	return http.Serve(listener, mux)
}

type gateway struct {
	client *redis.Client
	prefix string
}

func (g *gateway) signIn(w http.ResponseWriter, r *http.Request) {
	user := r.PathValue("user")
	locked, err := g.client.SetNX(r.Context(), g.prefix+user, 1, expiry).Result()
	if err == nil && !locked {
		http.Error(w, "your last request is still being processed", http.StatusTooManyRequests)
		return
	}
	if err == nil {
		defer g.client.Del(context.WithoutCancel(r.Context()), g.prefix+user)
		err = g.give(r.Context(), user)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func (g *gateway) give(ctx context.Context, user string) error {
	n, err := g.client.LLen(ctx, g.prefix+"gifts:"+user).Result()
	if err != nil || n > 0 {
		return err
	}
	time.Sleep(backend)
	if err := g.client.RPush(ctx, g.prefix+"gifts:"+user, "a teapot").Err(); err != nil {
		return err
	}
	fmt.Printf("gave %s a gift\n", user)
	return nil
}
