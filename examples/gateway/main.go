// Command gateway gives each user who signs in a gift, once, however often the user taps
// and whichever of several gateways the taps go to.
package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/example"
)

const (
	lease   = time.Second
	backend = 2 * time.Second // how long the slow service behind the gateway takes
	tapping = 50 * time.Millisecond
)

func main() {
	example.Main(example.Scenario{
		Name:   "gateway",
		Usage:  "sign in and get a gift: while a user's request is processed, further ones are refused at once",
		Modes:  map[string]string{"recipe": "guard the user with SET key 1 PX lease NX, and DEL"},
		Direct: direct,
		Roles:  map[string]func(context.Context, *example.Worker) error{"gateway": gateway},
	})
}

var errBusy = errors.New("the user's last request is still being processed")

// gate runs fn, or returns errBusy at once if it is running already for that user.
type gate func(ctx context.Context, user string, fn func(ctx context.Context) error) error

func gateway(ctx context.Context, w *example.Worker) error {
	locks, err := holdfast.New(w.Redis, holdfast.WithLease(lease))
	if err != nil {
		return err
	}
	defer locks.Close(context.WithoutCancel(ctx))

	one := gate(func(ctx context.Context, user string, fn func(context.Context) error) error {
		held, err := locks.Mutex(w.Key(user)).TryLock(ctx)
		if errors.Is(err, holdfast.ErrNotAcquired) {
			return errBusy
		}
		if err != nil {
			return err
		}
		defer held.Unlock(ctx)
		return fn(held.Context(ctx))
	})
	if w.Mode == "recipe" {
		one = setEX(w)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /sign-in/{user}", func(rw http.ResponseWriter, r *http.Request) {
		user := r.PathValue("user")
		err := one(r.Context(), user, func(ctx context.Context) error { return give(ctx, w, user) })
		switch {
		case errors.Is(err, errBusy):
			http.Error(rw, err.Error(), http.StatusTooManyRequests)
		case errors.Is(err, holdfast.ErrUnavailable): // the state is unknown: refuse
			http.Error(rw, "try later", http.StatusServiceUnavailable)
		case err != nil:
			http.Error(rw, err.Error(), http.StatusInternalServerError)
		}
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	w.Say("listens on %s", listener.Addr())
	server := &http.Server{Handler: mux}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil // the director has gone
}

// give looks whether the user has the gift and gives it if not.
func give(ctx context.Context, w *example.Worker, user string) error {
	n, err := w.Redis.LLen(ctx, w.Key("gifts:"+user)).Result()
	if err != nil || n > 0 {
		return err // or welcome back
	}
	w.Here("giving " + user + " a gift")
	if err := w.Think(ctx, backend); err != nil {
		return err
	}
	w.Say("gives %s a gift", user)
	return w.Redis.RPush(ctx, w.Key("gifts:"+user), "a teapot").Err()
}

func direct(ctx context.Context, d *example.Director) error {
	g1 := d.Start("gateway", "gateway-1")
	g2 := d.Start("gateway", "gateway-2")
	dying := d.StartUntil("giving grace a gift", "gateway", "gateway-3")
	a1, a2, a3 := g1.Await("listens on "), g2.Await("listens on "), dying.Await("listens on ")

	d.Say("ada taps every %v, on all gateways, until she is welcome", tapping)
	adas, err := tapUntilServed(ctx, "ada", a1, a2, a3)
	d.Must(err)

	d.Say("grace signs in on gateway-3, which dies in the middle of it")
	gone := make(chan struct{})
	go func() {
		tapUntilDead(ctx, "grace", a3)
		close(gone)
	}()
	dying.AwaitStop()
	dying.Kill()
	<-gone
	began := time.Now()
	graces, err := tapUntilServed(ctx, "grace", a1, a2)
	d.Must(err)
	d.Say("grace was let in and served %.1fs after the crash", time.Since(began).Seconds())

	for user, refused := range map[string]int{"ada": adas, "grace": graces} {
		gifts, err := d.Redis.LLen(ctx, d.Key("gifts:"+user)).Result()
		d.Must(err)
		d.Say("%s: %d gifts, %d requests refused", user, gifts, refused)
		d.Check(gifts == 1, "%s got %d gifts", user, gifts)
		d.Check(refused > 0, "%s was never refused", user)
	}
	return nil
}
