package locktest

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A call re-enters a lock if its context descends from that of a held lease of that very lock, and
// only then.
var reentryScenarios = map[string]func(*Env){
	// The context of a job's lock, shared by the workers that it starts, makes them no owner of the
	// locks that they take: they exclude each other, however they ask.
	"OtherLocksChangeNothing": func(e *Env) {
		m := e.Manager()
		outer := e.MustLock(e.kind.Lock(m, e.Key+":outer"))
		ctx := outer.Context(bg)
		l := e.Lock(m)
		held := Got(e, l.Lock, ctx)
		for _, c := range []context.Context{ctx, outer.Context(ctx), context.WithValue(ctx, valueKey{}, "value")} {
			_, err := l.TryLock(c)
			e.WantErr(err, holdfast.ErrNotAcquired)
		}
		results := make(chan error)
		go func() {
			results <- holdfast.Do(ctx, l, func(context.Context, *holdfast.Lease) error {
				if held.Err() == nil {
					e.Error("Do was let in beside the holder")
				}
				return nil
			})
		}()
		e.Parked(m, 1)
		async := e.kind.Async(l, ctx)
		e.Parked(m, 2)
		go func() {
			mu := holdfast.SyncLocker(ctx, l)
			mu.Lock()
			defer mu.Unlock()
			results <- nil
		}()
		e.Parked(m, 3)
		inner, err := l.Lock(held.Context(ctx)) // the holder itself, though others wait
		redistest.Must(e, err)
		e.MustUnlock(inner, held)
		redistest.Check(e, <-results)
		r := <-async
		if r.Err != nil {
			e.Fatal(r.Err)
		}
		e.Parked(m, 1)
		e.MustUnlock(r.Lease)
		redistest.Check(e, <-results)
		e.MustUnlock(outer)
		e.Clean(m)
	},

	// Whatever stands between a lease's context and the call: other leases, values, cancellations.
	"ReentersAtAnyDepth": func(e *Env) {
		m := e.Manager()
		l := e.Lock(m)
		outer := e.MustLock(l)
		ctx := outer.Context(bg)
		leases := []*holdfast.Lease{outer}
		for depth := range 200 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(context.WithValue(ctx, valueKey{}, depth))
			defer cancel()
			next := l
			if depth%20 == 7 {
				next = e.kind.Lock(m, e.Key+string(rune('a'+depth/20)))
			}
			got, err := next.Lock(ctx)
			if err != nil {
				e.Fatalf("at depth %d: %v", depth, err)
			}
			leases = append(leases, got)
			ctx = got.Context(ctx)
		}
		redistest.Want(e, len(e.Holders()), 1, "%d holders")
		e.MustUnlock(leases[1:]...)
		last := context.WithoutCancel(ctx) // of all those leases only the first is still held
		again := Got(e, l.Lock, last)
		e.MustUnlock(outer)
		other, err := l.TryLock(last) // again, which is held, is not among its leases
		if !errors.Is(err, holdfast.ErrNotAcquired) {
			e.Errorf("%v, %v: re-entered without a held lease", other, err)
		}
		e.MustUnlock(again)
		e.Clean(m)
	},

	// A context may be merged from several, by code of the user.
	"ReentersUnderMergedContexts": func(e *Env) {
		m := e.Manager()
		one, two := e.Lock(m), e.kind.Lock(m, e.Key+":two")
		first, second := e.MustLock(one), e.MustLock(two)
		merged := mergedContext{first.Context(bg), second.Context(bg)}
		for _, l := range []holdfast.Locker{one, two} {
			again, err := l.Lock(merged)
			redistest.Must(e, err)
			e.MustUnlock(again)
			_, err = l.TryLock(holdfast.WithoutOwner(merged))
			e.WantErr(err, holdfast.ErrNotAcquired)
		}
		e.MustUnlock(first, second)
		e.Clean(m)
	},

	// A lease that has ended is no ground for re-entry, even if another lease of its hold is held.
	"EndedLeaseDoesNotReenter": func(e *Env) {
		m := e.Manager()
		l := e.Lock(m)
		outer := e.MustLock(l)
		inner, err := l.Lock(outer.Context(bg))
		redistest.Must(e, err)
		ctx := context.WithoutCancel(inner.Context(bg))
		e.MustUnlock(inner)
		_, err = l.TryLock(ctx)
		e.WantErr(err, holdfast.ErrNotAcquired)
		next := e.kind.Async(l, ctx)
		e.Parked(m, 1)
		e.MustUnlock(outer)
		e.MustUnlock(Granted(e, next))
		e.Clean(m)
	},
}

// valueKey is the key of a value of the user's.
type valueKey struct{}

// mergedContext has the values of two contexts.
type mergedContext struct {
	context.Context
	other context.Context
}

func (c mergedContext) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.other.Value(key)
}
