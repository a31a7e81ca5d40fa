package locktest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

var releaseScenarios = map[string]func(*Env){
	// AC-16, L8
	"EndedContextStillReleases": func(e *Env) {
		m := e.Manager()
		l := e.MustLock(e.Lock(m))
		ctx, cancel := context.WithCancel(bg)
		cancel()
		if err := l.Unlock(ctx); err != nil {
			e.Errorf("Unlock: %v", err)
		}
		e.Clean(m)
	},

	// AC-17, S5
	"TwiceIsErrNotHeldAndTouchesNobody": func(e *Env) {
		m, other := e.Manager(), e.Manager()
		l := e.MustLock(e.Lock(m))
		e.MustUnlock(l)
		next := e.MustLock(e.Lock(other))
		e.WantErr(l.Unlock(bg), holdfast.ErrNotHeld)
		e.WantErr(l.Extend(bg, time.Second), holdfast.ErrNotHeld)
		e.WantErr(l.Err(), holdfast.ErrReleased)
		if !next.Valid() || e.PTTL() < 0 {
			e.Error("the next holder's lock was touched")
		}
		e.MustUnlock(next)
	},

	// AC-96
	"FromAHundredGoroutinesSucceedsOnce": func(e *Env) {
		l := e.MustLock(e.Lock(e.Manager()))
		var ok, again atomic.Int32
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				switch err := l.Unlock(bg); {
				case err == nil:
					ok.Add(1)
				case errors.Is(err, holdfast.ErrNotHeld):
					again.Add(1)
				default:
					e.Error(err)
				}
			})
		}
		wg.Wait()
		if ok.Load() != 1 || again.Load() != 99 {
			e.Errorf("%d succeeded, %d ErrNotHeld", ok.Load(), again.Load())
		}
	},

	// AC-18: with another holder, who keeps the lock.
	"AfterExpiryLeavesTheNextHolder": func(e *Env) {
		m, other := e.Manager(), e.Manager()
		l := e.MustLock(e.Lock(m, holdfast.WithFixedLease(100*time.Millisecond)))
		next := e.MustLock(e.Lock(other, holdfast.WithLease(time.Hour)))
		e.WantErr(l.Unlock(bg), holdfast.ErrLeaseLost)
		e.Eventually("the old manager is done", func() bool { return m.Stats().Locks == 0 })
		if !next.Valid() || e.PTTL() < time.Minute/2 {
			e.Errorf("the next holder's lock was touched: valid %v, TTL %v", next.Valid(), e.PTTL())
		}
		e.MustUnlock(next)
	},

	"ForceUnlockOfAnotherKindTouchesNothing": func(e *Env) {
		m := e.Manager()
		e.Server().Admin().Set(bg, e.Key, "mine", 0)
		_, err := e.ForceUnlock(m)
		e.WantErr(err, holdfast.ErrWrongKind)
		redistest.Want(e, e.srv.Admin().Get(bg, e.Key).Val(), "mine", "the value is %q")
		for _, hash := range [][]any{
			{"name", "Ann", "mail", "a@b"}, {"mode", "dark"},
			{"name", "Ann"}, {"visits", 17}, {"user:1", "Ann"}, {"user:1", 0}, {"candidate:7", 12}, {"mode", "read"}, {"mode", "read", "page", 5}, {"mode", "read", "page:5", 5},
		} {
			e.srv.Admin().Del(bg, e.Key)
			e.srv.Admin().HSet(bg, e.Key, hash...)
			_, err = e.ForceUnlock(m)
			e.WantErr(err, holdfast.ErrWrongKind)
			if n := e.srv.Admin().HLen(bg, e.Key).Val(); int(n) != len(hash)/2 {
				e.Errorf("%d fields are left of %v", n, hash)
			}
			if info, err := e.Inspect(m); err != nil || info.Kind != holdfast.KindOther || info.Held || len(info.Holders) != 0 {
				e.Errorf("%v is shown as %+v, %v", hash, info, err)
			}
		}
		_, err = m.ForceUnlock(bg, "a{b")
		e.WantErr(err, holdfast.ErrInvalidName)
	},

	// Redisson's owners are a client's id and a thread's, also a negative one; a transaction puts its own
	// behind it.
	"ForceUnlockKnowsRedissonsOwners": func(e *Env) {
		m := e.Manager()
		const client, tx = "0c2d0a52-7b0c-4f0e-9d3b-3f7a5f1c6e11", ":8f14e45fceea167a5a36dedd4bea2543"
		for _, hash := range [][]any{
			{client + ":31", 1}, {client + ":-5", 2}, {client + ":31" + tx, 1},
			{"mode", "read", client + ":31" + tx, 1}, {"mode", "write", client + ":-5:write", 1}, {"mode", "write", client + ":31:write" + tx, 1},
		} {
			e.Server().Admin().HSet(bg, e.Key, hash...)
			e.srv.Admin().PExpire(bg, e.Key, time.Minute)
			e.srv.Admin().Set(bg, fmt.Sprintf("{%s}:%s:rwlock_timeout:1", e.Key, hash[len(hash)-2]), 1, time.Minute) // a reader's right
			if info, err := e.Inspect(m); err != nil || !info.Held || len(info.Holders) != 1 {
				e.Errorf("%v is shown as %+v, %v", hash, info, err)
			}
			if freed, err := e.ForceUnlock(m); !freed || err != nil {
				e.Errorf("%v: %v, %v", hash, freed, err)
			}
			e.Free()
		}
	},

	// AC-20: Unlock is bounded, the release goes on by itself, renewal has stopped.
	"FrozenServerDoesNotHoldUnlock": func(e *Env) {
		m := e.Manager(holdfast.WithLease(20 * time.Second)) // Unlock waits for a second
		l := e.MustLock(e.Lock(m))
		e.Server().Pause()
		start := time.Now()
		err := l.Unlock(bg)
		if d := time.Since(start); d < 900*time.Millisecond || d > e.bound(time.Second+prompt) {
			e.Errorf("Unlock returned after %v", d)
		}
		e.Worst("L8:Unlock-on-a-frozen-server", time.Since(start))
		e.WantErr(err, holdfast.ErrUnavailable)
		e.WantErr(l.Unlock(bg), holdfast.ErrUnavailable) // still
		redistest.Want(e, m.Stats().Held, 0, "%d holds are renewed")
		e.srv.Resume()
		e.Eventually("released in the background", func() bool { return Pending(m) == 0 && m.Stats().Locks == 0 })
		e.Free()
		e.MustUnlock(l) // all copies of the release are answered
		e.WantErr(l.Unlock(bg), holdfast.ErrNotHeld)
		e.Clean(m)
	},

	// Each Unlock says why there is no release yet.
	"RefusedReleaseSaysWhy": func(e *Env) {
		m := e.Manager(holdfast.WithLease(time.Hour))
		for _, c := range []struct {
			refuse, allow []any
			says          string
		}{
			{[]any{"CONFIG", "SET", "min-replicas-to-write", "1"}, []any{"CONFIG", "SET", "min-replicas-to-write", "0"}, "NOREPLICAS"},
			{[]any{"REPLICAOF", "127.0.0.1", "1"}, []any{"REPLICAOF", "NO", "ONE"}, "READONLY"},
		} {
			l := e.MustLock(e.Lock(m))
			e.srv.Admin().Do(bg, c.refuse...)
			for range 2 {
				err := l.Unlock(bg)
				var reply redis.Error
				if e.WantErr(err, holdfast.ErrUnavailable); !errors.As(err, &reply) || !strings.Contains(reply.Error(), c.says) /* Redis 6.2 has it behind its own words */ {
					e.Errorf("%v does not say %s", err, c.says)
				}
			}
			e.srv.Admin().Do(bg, c.allow...)
			e.Eventually("Unlock is told", func() bool { return l.Unlock(bg) == nil })
		}
		e.Clean(m)
	},

	// Do: runs under the lock, unlocks also after a panic, joins what went wrong with the lease.
	"DoUnlocksWhateverHappens": func(e *Env) {
		m := e.Manager()
		l := e.Lock(m)
		mine := errors.New("mine")
		err := holdfast.Do(bg, l, func(ctx context.Context, lease *holdfast.Lease) error {
			if again, err := l.Lock(ctx); err != nil { // the context carries the owner
				e.Error(err)
			} else {
				e.MustUnlock(again)
			}
			return mine
		})
		e.WantErr(err, mine)
		func() {
			defer func() {
				if recover() == nil {
					e.Error("the panic was swallowed")
				}
			}()
			_ = holdfast.Do(bg, l, func(context.Context, *holdfast.Lease) error { panic("boom") })
		}()
		e.Free()
		err = holdfast.Do(bg, l, func(_ context.Context, lease *holdfast.Lease) error { return lease.Unlock(bg) })
		if err != nil {
			e.Errorf("after fn unlocked: %v", err)
		}
		err = holdfast.Do(bg, l, func(ctx context.Context, _ *holdfast.Lease) error {
			e.srv.Admin().Del(bg, e.Key)
			<-ctx.Done()
			e.WantErr(context.Cause(ctx), holdfast.ErrLeaseLost)
			return mine
		})
		e.WantErr(err, mine, holdfast.ErrLeaseLost)
		times := 0
		err = holdfast.Do(bg, l, func(context.Context, *holdfast.Lease) error {
			times++
			e.srv.Pause()
			return nil
		})
		e.srv.Resume()
		e.WantErr(err, holdfast.ErrNotReleased)
		e.WantNotErr(err, holdfast.ErrUnavailable) // or it would be called again
		var unreleased *holdfast.ReleaseError
		if times != 1 || !errors.As(err, &unreleased) || !errors.Is(unreleased.Err, holdfast.ErrUnavailable) {
			e.Errorf("run %d times, and then the release is not confirmed: %v", times, err)
		}
		e.Free()
		ctx, cancel := context.WithCancel(bg)
		cancel()
		err = holdfast.Do(ctx, l, func(context.Context, *holdfast.Lease) error {
			e.Error("fn was called without the lock")
			return nil
		})
		e.WantErr(err, holdfast.ErrNotAcquired)
	},

	"SyncLockerExcludesAndPanicsWithTypedErrors": func(e *Env) {
		m := e.Manager()
		l := holdfast.SyncLocker(bg, e.Lock(m))
		var s Section
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20 {
					l.Lock()
					s.Enter(e, 0)
					l.Unlock()
				}
			})
		}
		wg.Wait()
		panicOf := func(f func()) (err error) {
			defer func() { err, _ = recover().(error) }()
			f()
			return nil
		}
		e.WantErr(panicOf(l.Unlock), holdfast.ErrNotHeld)
		l.Lock()
		e.srv.Admin().Del(bg, e.Key)
		l.Lock() // by another owner, which must not lose it to the late Unlock of the first
		e.WantErr(panicOf(l.Unlock), holdfast.ErrLeaseLost)
		e.Busy(e.Lock(e.Manager()).TryLock)
		l.Unlock()
		ctx, cancel := context.WithTimeout(bg, 50*time.Millisecond)
		defer cancel()
		held := e.MustLock(e.Lock(m))
		e.WantErr(panicOf(holdfast.SyncLocker(ctx, e.Lock(m)).Lock), holdfast.ErrNotAcquired)
		e.MustUnlock(held)
	},
}
