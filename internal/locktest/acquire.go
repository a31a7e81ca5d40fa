package locktest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// isCommand matches what a lock sends, as opposed to a connection's handshake.
func isCommand(cmd []string) bool {
	for _, name := range []string{"evalsha", "eval", "subscribe", "unsubscribe", "publish"} {
		if redistest.Command(name)(cmd) {
			return true
		}
	}
	return false
}

var acquireScenarios = map[string]func(*Env){
	// S1: unprotected state under the lock, over goroutines, managers and connections.
	"Excludes": func(e *Env) {
		var s Section
		var wg sync.WaitGroup
		const managers, goroutines, rounds = 3, 4, 40
		for range managers {
			m := e.Manager()
			for range goroutines {
				l := e.Lock(m)
				wg.Go(func() {
					for range rounds {
						lease, err := l.Lock(bg)
						if err != nil {
							e.Error(err)
							return
						}
						s.Enter(e, 0)
						redistest.Check(e, lease.Unlock(bg))
					}
				})
			}
		}
		wg.Wait()
		redistest.Want(e, s.n, managers*goroutines*rounds, "%d sections, want %d")
		e.srv.RequireTTLs(e)
	},

	// The usual case: two commands, nothing else.
	"UncontendedPairIsTwoCommands": func(e *Env) {
		m, p := e.Via()
		l := e.Lock(m)
		e.MustUnlock(e.MustLock(l)) // scripts are loaded now
		p.Record()
		e.MustUnlock(e.MustLock(l))
		if n := p.Count(isCommand); n != 2 {
			e.Errorf("%d commands, want 2: %q", n, p.Commands())
		}
		e.Clean(m)
	},

	// AC-04
	"EndedContextSendsNothing": func(e *Env) {
		m, p := e.Via()
		ctx, cancel := context.WithCancelCause(bg)
		cause := errors.New("changed my mind")
		cancel(cause)
		for _, lock := range []func(context.Context) (*holdfast.Lease, error){e.Lock(m).Lock, e.Lock(m).TryLock} {
			_, err := lock(ctx)
			e.WantErr(err, holdfast.ErrNotAcquired, context.Canceled, cause)
		}
		redistest.Want(e, p.Count(isCommand), 0, "%d commands")
	},

	// AC-05, S11
	"TryLockOfAHeldLockIsOneCommand": func(e *Env) {
		held := e.MustLock(e.Lock(e.Manager()))
		m, p := e.Via()
		l := e.Lock(m)
		_, _ = l.TryLock(bg) // loads the script
		p.Record()
		_, err := l.TryLock(bg)
		e.WantErr(err, holdfast.ErrNotAcquired)
		e.WantNotErr(err, holdfast.ErrUnavailable)
		if n := p.Count(isCommand); n != 1 {
			e.Errorf("%d commands, want 1: %q", n, p.Commands())
		}
		e.MustUnlock(held)
		e.Clean(m)
	},

	"TryLockInsideTheProcessNeedsNoCommand": func(e *Env) {
		m, p := e.Via()
		held := e.MustLock(e.Lock(m))
		p.Record()
		_, err := e.Lock(m).TryLock(bg)
		e.WantErr(err, holdfast.ErrNotAcquired)
		redistest.Want(e, p.Count(isCommand), 0, "%d commands")
		e.MustUnlock(held)
	},

	// Re-entry by context: no command, the same token, free after the last.
	"ReentersByContext": func(e *Env) {
		m, p := e.Via()
		l := e.Lock(m, holdfast.WithFencing())
		outer := e.MustLock(l)
		p.Record()
		ctx := outer.Context(bg)
		var inner []*holdfast.Lease
		for _, lock := range []func(context.Context) (*holdfast.Lease, error){l.Lock, l.TryLock, e.Lock(m).Lock} {
			got, err := lock(ctx)
			redistest.Must(e, err)
			if got.Token() != outer.Token() || got.Token() == 0 {
				e.Errorf("token %d, the owner's is %d", got.Token(), outer.Token())
			}
			inner = append(inner, got)
		}
		e.MustUnlock(outer) // in any order
		for _, got := range inner {
			redistest.Want(e, got.Valid(), true, "an inner lease ended with the outer")
			if _, err := e.Lock(m).TryLock(bg); !errors.Is(err, holdfast.ErrNotAcquired) {
				e.Errorf("free before the last lease is unlocked: %v", err)
			}
			redistest.Want(e, p.Count(isCommand), 0, "%d commands")
			e.MustUnlock(got)
		}
		e.Free()
	},

	"OwnersAreNotGoroutinesOrHandles": func(e *Env) {
		m := e.Manager()
		l := e.Lock(m)
		held := e.MustLock(l)
		if _, err := l.TryLock(bg); !errors.Is(err, holdfast.ErrNotAcquired) {
			e.Errorf("the same goroutine and handle re-entered without a context: %v", err)
		}
		fanOut := holdfast.WithoutOwner(held.Context(bg))
		if _, err := l.TryLock(fanOut); !errors.Is(err, holdfast.ErrNotAcquired) {
			e.Errorf("re-entered under WithoutOwner: %v", err)
		}
		done := make(chan error)
		go func() { done <- held.Unlock(bg) }() // AC-19
		if err := <-done; err != nil {
			e.Errorf("Unlock by another goroutine: %v", err)
		}
		// The owner has gone with its last lease; its context locks anew.
		again := Got(e, l.Lock, holdfast.WithoutOwner(bg))
		e.MustUnlock(again)
	},

	// AC-12, AC-13: owner ids of one manager share a prefix, and must not be confused.
	"OwnersWithACommonPrefix": func(e *Env) {
		m := e.Manager()
		for range 12 { // owner ids <manager>:1 to :12
			e.MustUnlock(e.MustLock(e.Lock(m)))
		}
		held := e.MustLock(e.Lock(m))
		holders := e.Holders()
		if len(holders) != 1 {
			e.Fatalf("holders %q", holders)
		}
		for id := range holders {
			owner := strings.TrimSuffix(id, ":write")
			e.srv.Admin().HDel(bg, e.Key, id)
			e.srv.Admin().HSet(bg, e.Key, owner+"0"+strings.TrimPrefix(id, owner), 1)
			if e.kind.Write {
				e.srv.Admin().HSet(bg, e.Key, "mode", "write")
			}
		}
		e.srv.Admin().PExpire(bg, e.Key, time.Minute)
		err := held.Unlock(bg)
		e.WantErr(err, holdfast.ErrLeaseLost)
		redistest.Want(e, e.srv.Admin().Exists(bg, e.Key).Val(), 1, "another owner's lock was released")
	},

	// AC-92, AC-94
	"KeyOfAnotherKind": func(e *Env) {
		m := e.Manager()
		admin := e.Server().Admin()
		kinds := map[string]func(key string){
			"string":  func(key string) { admin.Set(bg, key, "mine", 0) },
			"list":    func(key string) { admin.RPush(bg, key, "a") },
			"rw lock": func(key string) { admin.HSet(bg, key, "mode", "read", "owner:1", 1) },
			"mutex":   func(key string) { admin.HSet(bg, key, "owner:1", 1) },
			"hash":    func(key string) { admin.HSet(bg, key, "mode", "dark", "a", "b") },
		}
		delete(kinds, map[bool]string{false: "mutex", true: "rw lock"}[e.kind.Write]) // its own
		for kind, put := range kinds {
			key := "kind:" + kind
			put(key)
			before := admin.Dump(bg, key).Val()
			for _, call := range []func(context.Context) (*holdfast.Lease, error){
				e.kind.Lock(m, key).TryLock, e.kind.Lock(m, key).Lock,
			} {
				_, err := call(bg)
				e.WantErr(err, holdfast.ErrWrongKind)
			}
			if after := admin.Dump(bg, key).Val(); after != before {
				e.Errorf("%s: the value was changed", kind)
			}
		}
		other := e.MustLock(e.Lock(m)) // other locks are not affected
		e.MustUnlock(other)
	},

	// AC-91, F14
	"BadOptionsSendNothing": func(e *Env) {
		m, p := e.Via()
		for _, o := range []holdfast.LockOption{
			holdfast.WithLease(0), holdfast.WithLease(-1), holdfast.WithLease(1), holdfast.WithLease(500 * time.Microsecond),
			holdfast.WithLease(1<<63 - 1), holdfast.WithFixedLease(9 * time.Millisecond), holdfast.WithFixedLease(1<<63 - 1),
			holdfast.WithMaxHold(0), holdfast.WithMaxHold(lease - 1), nil,
		} {
			l := e.Lock(m, o)
			_, err := l.Lock(bg)
			e.WantErr(err, holdfast.ErrInvalidOption)
			_, err = l.TryLock(bg)
			var option *holdfast.OptionError
			if !errors.As(err, &option) || option.Reason == "" {
				e.Errorf("%v is no OptionError with a reason", err)
			}
		}
		redistest.Want(e, p.Count(isCommand), 0, "%d commands")
		e.srv.RequireNoKeys(e)
	},

	// F13, AC-90, AC-93, AC-95: any name works end to end, wake-up included, or is refused.
	"NamesOfAnyShape": func(e *Env) {
		a, b := e.Manager(), e.Manager()
		for _, name := range []string{
			"a b", "x:y:z", "nul\x00nul", "cr\r\nlf", "\xff\xfe invalid utf-8", "*?[a]", "a{t}b", "{t}x", "ünïcode", "\n",
			strings.Repeat("\x00\xff\r", 100),
		} {
			held := e.MustLock(e.kind.Lock(a, name))
			got := make(chan error, 1)
			go func() {
				l, err := e.kind.Lock(b, name).Lock(bg)
				if err == nil {
					err = l.Unlock(bg)
				}
				got <- err
			}()
			e.Parked(b, 1)
			e.Eventually("the waiter listens", func() bool { return b.Stats().Subscriptions > 0 })
			e.MustUnlock(held)
			if err := <-got; err != nil {
				e.Errorf("%q: %v", name, err)
			}
		}
		for _, name := range []string{"", "{}x", "a{b", "a}b", "}{", "x{}y{z}", "{x}", string(make([]byte, 1<<20)), "redisson_lock_queue:{x}", "{x}:a:1:rwlock_timeout:1"} {
			_, err := e.kind.Lock(a, name).TryLock(bg)
			e.WantErr(err, holdfast.ErrInvalidName)
		}
	},

	// LockAsync: one result, buffered, no caller needs to receive it.
	"AsyncDeliversOneResult": func(e *Env) {
		m := e.Manager()
		l := e.Lock(m)
		first := <-e.kind.Async(l, bg)
		if first.Err != nil {
			e.Fatal(first.Err)
		}
		second := e.kind.Async(l, bg)
		ctx, cancel := context.WithCancel(bg)
		third := e.kind.Async(l, ctx)
		e.Parked(m, 2)
		cancel()
		r := <-third
		e.WantErr(r.Err, holdfast.ErrNotAcquired, context.Canceled)
		if r.Lease != nil {
			e.Error("a lease came with an error")
		}
		e.MustUnlock(first.Lease)
		r = <-second
		if r.Err != nil {
			e.Fatal(r.Err)
		}
		e.MustUnlock(r.Lease)
		if r := <-e.kind.Async(l, ctx); !errors.Is(r.Err, holdfast.ErrNotAcquired) {
			e.Errorf("with an ended context: %v", r.Err)
		}
		e.Clean(m)
	},
}
