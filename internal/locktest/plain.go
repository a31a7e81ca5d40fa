package locktest

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// plainWaiter is one of Redisson's that waits for a mutex or for the write side, as far as Redis
// can see: it has no place in the queue, and tries when it hears of a release.
type plainWaiter struct {
	e       *Env
	sub     *redis.PubSub
	fields  []any
	release string // its message
}

// plainWaiter returns one that listens.
func (e *Env) plainWaiter() *plainWaiter {
	e.Helper()
	const id = "0c2d0a52-7b0c-4f0e-9d3b-3f7a5f1c6e11:8"
	w := &plainWaiter{e, e.srv.Admin().Subscribe(bg, e.Channel(e.Key)), []any{id, 1}, "0"}
	if e.kind.Write {
		w.fields, w.release = []any{"mode", "write", id + ":write", 1}, "1"
	}
	e.Cleanup(func() { w.sub.Close() })
	if _, err := w.sub.Receive(bg); err != nil {
		e.Fatal(err)
	}
	return w
}

// take takes the lock if it is free, as Redisson's scripts do: if the key is not there.
func (w *plainWaiter) take() bool {
	w.e.Helper()
	n, err := w.e.srv.Admin().Eval(bg, `if redis.call('exists', KEYS[1]) == 1 then return 0 end
		redis.call('hset', KEYS[1], unpack(ARGV))
		redis.call('pexpire', KEYS[1], 30000)
		return 1`, []string{w.e.Key}, w.fields...).Int()
	if err != nil {
		w.e.Fatal(err)
	}
	return n == 1
}

// listen waits for a message.
func (w *plainWaiter) listen() {
	w.e.Helper()
	ctx, cancel := context.WithTimeout(bg, patience)
	defer cancel()
	if _, err := w.sub.ReceiveMessage(ctx); err != nil {
		w.e.Fatalf("Redisson's waiter was not told: %v", err)
	}
}

// unlock gives back what it has taken.
func (w *plainWaiter) unlock() {
	w.e.srv.Admin().Del(bg, w.e.Key)
	w.e.srv.Admin().Publish(bg, w.e.Channel(w.e.Key), w.release)
}
