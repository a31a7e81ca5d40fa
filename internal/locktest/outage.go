package locktest

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// outageScenarios are about a Redis that is dead, silent, busy or refuses.
var outageScenarios = map[string]func(*Env){
	// AC-06, L6: Redis is down, or worse, does not answer.
	"DeadOrSilentServer": func(e *Env) {
		m, p := e.Via()
		try := func(what string, timeout time.Duration) {
			for _, lock := range []func(context.Context) (*holdfast.Lease, error){e.Lock(m).Lock, e.Lock(m).TryLock} {
				ctx, cancel := context.WithTimeout(bg, timeout)
				start := time.Now()
				_, err := lock(ctx)
				if d := time.Since(start); d > e.bound(timeout+prompt) {
					e.Errorf("%s: returned after %v", what, d)
				}
				e.Worst("L6:late-return", time.Since(start)-timeout)
				cancel()
				e.WantErr(err, holdfast.ErrUnavailable)
				e.WantNotErr(err, holdfast.ErrNotAcquired)
			}
			ctx, cancel := context.WithCancel(bg)
			time.AfterFunc(100*time.Millisecond, cancel)
			start := time.Now()
			_, err := e.Lock(m).Lock(ctx)
			if d := time.Since(start); d > e.bound(100*time.Millisecond+prompt) {
				e.Errorf("%s: returned %v after the start, 100ms to the cancel", what, d)
			}
			e.WantErr(err, holdfast.ErrUnavailable, context.Canceled)
		}
		p.BlackHole(true)
		try("black hole", 300*time.Millisecond)
		p.Heal()
		e.srv.Pause()
		try("frozen", 300*time.Millisecond)
		e.srv.Resume()
		e.srv.Kill()
		try("dead", 300*time.Millisecond)
		// L7: it comes back, and a waiter that was there all along gets the lock.
		got := e.Parking(m, 1, e.Lock(m))
		e.srv.Restart()
		e.MustUnlock(<-got)
	},

	// Callers come and go for as long as it takes until what the first ones have left behind is
	// overdue, and given up, and that is overdue as well.
	"SilentServerIsToldToEveryone": func(e *Env) {
		m, p := e.Via()
		e.MustUnlock(e.MustLock(e.Lock(m)))
		p.BlackHole(true)
		var callers sync.WaitGroup
		for range 150 {
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(bg, 150*time.Millisecond)
				defer cancel()
				_, err := e.Lock(m).Lock(ctx)
				e.WantErr(err, holdfast.ErrUnavailable)
			})
			time.Sleep(20 * time.Millisecond) // so they come
		}
		callers.Wait()
		p.Heal()
		e.MustUnlock(e.MustLock(e.Lock(m)))
	},

	// TryLock without a deadline does not wait for a silent server forever.
	"TryLockIsBounded": func(e *Env) {
		m := e.Manager()
		e.Server().Pause()
		start := time.Now()
		_, err := e.Lock(m).TryLock(bg)
		redistest.WantMost(e, time.Since(start), e.bound(time.Second+prompt), "returned after %v")
		e.WantErr(err, holdfast.ErrUnavailable)
		e.srv.Resume()
		e.Eventually("no trace", func() bool { return m.Stats().Locks == 0 })
		e.Free()
	},

	// AC-07: the application has used up its pool. go-redis has connections of their own
	// for pipelines, so that alone does not even delay a lock; when those are stuck as
	// well, the caller leaves in time.
	"ExhaustedPool": func(e *Env) {
		p := e.Server().Proxy(e)
		client := p.ClientWith(e, func(o *redis.Options) { o.PoolSize = 1; o.MaxActiveConns = 1 })
		m := e.ManagerOn(client)
		blocked := make(chan struct{})
		ctx, cancel := context.WithCancel(bg)
		gate := p.HoldRequest(redistest.Command("blpop"))
		go func() { defer close(blocked); client.BLPop(ctx, time.Second, "nothing") }()
		gate.Wait(e)
		e.MustUnlock(e.MustLock(e.Lock(m)))
		p.Freeze(true)
		wait, cancelWait := context.WithTimeout(bg, 100*time.Millisecond)
		defer cancelWait()
		start := time.Now()
		_, err := e.Lock(m).Lock(wait)
		redistest.WantMost(e, time.Since(start), e.bound(100*time.Millisecond+prompt), "returned after %v")
		e.WantErr(err, holdfast.ErrUnavailable, context.DeadlineExceeded)
		p.Freeze(false)
		gate.Release()
		e.Clean(m, Tombstones)
		cancel()
		<-blocked
	},

	// AC-10, F4
	"FlushedScripts": func(e *Env) {
		m := e.Manager()
		for range 200 {
			e.srv.Admin().ScriptFlush(bg)
			l := e.MustLock(e.Lock(m))
			e.srv.Admin().ScriptFlush(bg)
			e.MustUnlock(l)
		}
		e.Clean(m)
	},

	// AC-11: LOADING is not a refusal of the lock.
	"LoadingServer": func(e *Env) {
		e.Server(redistest.WithAOF(), redistest.WithArgs("--key-load-delay", "200"))
		pipe := e.srv.Admin().Pipeline()
		for i := range 20_000 {
			pipe.Set(bg, "filler:"+time.Duration(i).String(), "x", 0)
		}
		redistest.Must(e, ErrOf(pipe.Exec(bg)))
		m := e.Manager()
		e.MustUnlock(e.MustLock(e.Lock(m)))
		e.srv.RestartNoWait()
		_, err := e.Lock(m).TryLock(bg)
		e.WantErr(err, holdfast.ErrUnavailable)
		e.WantNotErr(err, holdfast.ErrNotAcquired)
		e.srv.Admin().ConfigSet(bg, "key-load-delay", "0") // how long it takes is up to the machine
		e.MustUnlock(e.MustLock(e.Lock(m)))                // waits for the end of it
	},

	// OOM, READONLY, NOREPLICAS: errors, never refusals, and no state.
	"RefusingServer": func(e *Env) {
		m := e.Manager()
		e.MustUnlock(e.MustLock(e.Lock(m)))
		admin := e.srv.Admin()
		for _, tc := range []struct{ set, value, back, text string }{
			{"maxmemory", "1", "0", "OOM"},
			{"min-replicas-to-write", "1", "0", "NOREPLICAS"}, // AC-88
		} {
			redistest.Must(e, admin.ConfigSet(bg, tc.set, tc.value).Err())
			_, err := e.Lock(m).TryLock(bg)
			e.WantErr(err, holdfast.ErrUnavailable)
			e.WantNotErr(err, holdfast.ErrNotAcquired)
			if err != nil && !strings.Contains(err.Error(), tc.text) {
				e.Errorf("%v does not say %s", err, tc.text)
			}
			ctx, cancel := context.WithTimeout(bg, 200*time.Millisecond)
			_, err = e.Lock(m).Lock(ctx)
			cancel()
			e.WantErr(err, holdfast.ErrUnavailable, context.DeadlineExceeded)
			e.srv.RequireNoKeys(e)
			admin.ConfigSet(bg, tc.set, tc.back)
			e.MustUnlock(e.MustLock(e.Lock(m)))
		}
		admin.Do(bg, "REPLICAOF", "127.0.0.1", "1") // a replica of nothing
		_, err := e.Lock(m).TryLock(bg)
		e.WantErr(err, holdfast.ErrUnavailable)
		admin.Do(bg, "REPLICAOF", "NO", "ONE")
		e.MustUnlock(e.MustLock(e.Lock(m)))
		e.Clean(m)
	},

	// OOM while held: the release still works, and so does renewal.
	"ReleaseUnderOOM": func(e *Env) {
		m := e.Manager()
		l := e.MustLock(e.Lock(m))
		e.srv.Admin().ConfigSet(bg, "maxmemory", "1")
		e.Renews(m, 1)
		e.MustUnlock(l)
		e.srv.Admin().ConfigSet(bg, "maxmemory", "0")
		e.Clean(m)
	},
}
