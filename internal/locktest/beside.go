package locktest

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// besideScenarios: what Holdfast's waiters do to Redisson's fair waiters by standing beside them, and the other way round.
var besideScenarios = map[string]func(*Env){
	// A waiter that gets the lock takes what it wanted to wait off all times in the queue, be it much or little.
	"WaitsKeepTheOrder": func(e *Env) {
		m := e.Manager()
		for name, c := range map[string]struct{ wait, left time.Duration }{
			"5 s": {wait: 5 * time.Second}, "10 s": {wait: 10 * time.Second}, "the default": {wait: 300 * time.Second},
			"the default, and it has waited for long": {300 * time.Second, 10 * time.Second},
		} {
			held := e.MustLock(e.Lock(e.Manager()))
			first, second := e.Foreign(1), e.Foreign(2)
			first.wait, second.wait = c.wait, c.wait
			first.Try()
			if c.left > 0 {
				e.Server().Admin().ZAdd(bg, e.queueKeys()[1], zAt(time.Now().Add(c.left), first.id))
			}
			mine := e.Enqueue(m, 2)
			second.Try()
			e.MustUnlock(held)
			if !first.Lock(patience) {
				e.Fatal("Redisson's first is not told")
			}
			first.Release()
			if second.Try() {
				e.Fatalf("beside one that wants to wait for %s ours are overtaken", name)
			}
			e.MustUnlock(<-mine[0])
			e.MustUnlock(<-mine[1])
			if !second.Lock(patience) {
				e.Fatal("Redisson's second is not told")
			}
			second.Release()
			e.Clean(m)
		}
	},

	// Redisson gives its queue no TTL. Holdfast's scripts do, and it must not end while Redisson's waiters stand in
	// it, who may do so for as long as a lease.
	"QueueOutlivesUs": func(e *Env) {
		e.HeldByRedisson(e.Key)
		e.Foreign(1).Try()
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		got := redistest.Begin(func() error { _, err := e.Lock(e.Manager()).Lock(ctx); return err })
		e.Queued(2)
		cancel()
		<-got
		e.Queued(1)
		e.wantLongQueue()
	},

	// An operator that frees a lock notifies even those that wait behind a waiter whose time is over.
	"ForceUnlockBehindTheDead": func(e *Env) {
		e.HeldByRedisson(e.Key)
		const dead = "hf-00000000-0000-4000-8000-000000000000:1"
		admin, keys := e.Server().Admin(), e.queueKeys()
		admin.RPush(bg, keys[0], dead)
		admin.ZAdd(bg, keys[1], zAt(time.Now().Add(time.Minute), dead))
		first := e.Foreign(1)
		first.Try()
		admin.ZAdd(bg, keys[1], zAt(time.Now().Add(-time.Second), dead))
		redistest.Must(e, ErrOf(e.ForceUnlock(e.Manager())))
		ctx, cancel := context.WithTimeout(bg, e.bound(prompt))
		defer cancel()
		if _, err := first.sub.ReceiveMessage(ctx); err != nil || !first.Try() {
			e.Fatalf("Redisson's waiter is not told: %v", err)
		}
		first.Release()
	},

	// A place without a time is given one: Redisson would wait for it forever.
	"RepairedQueueLasts": func(e *Env) {
		release := e.HeldByRedisson(e.Key)
		redistest.Must(e, e.Server().Admin().RPush(bg, e.queueKeys()[0], "0c2d0a52-7b0c-4f0e-9d3b-3f7a5f1c6e11:9").Err())
		e.Foreign(1).Try()
		release()
		if _, err := e.Lock(e.Manager()).TryLock(bg); err == nil {
			e.Error("TryLock overtook Redisson's waiters")
		}
		e.wantLongQueue()
	},
}

// wantLongQueue fails unless the keys of the queue stay for half a day.
func (e *Env) wantLongQueue() {
	e.Helper()
	for _, key := range e.queueKeys() {
		if ttl := e.Server().Admin().PTTL(bg, key).Val(); ttl >= 0 && ttl < 12*time.Hour || ttl == -2 {
			e.Errorf("%s has a TTL of %v", key, ttl)
		}
	}
}

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
	redistest.Must(e, ErrOf(w.sub.Receive(bg)))
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
