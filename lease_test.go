package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/locktest/several"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

type valueKey struct{}

// A holder that goes on for days makes contexts all the time: what no task uses any more is
// collected, whether its parent ends or not.
func TestLease_ContextsAreNotKept(t *testing.T) {
	srv := redistest.Start(t)
	m := locktest.ManagerOn(t, srv)
	root, cancel := context.WithCancel(t.Context())
	defer cancel()
	for lock, l := range map[string]holdfast.Locker{"mutex": m.Mutex("a"), "multi": several.Multi(t, m.Mutex("b"), m.Mutex("c"))} {
		lease := locktest.MustLock(t, l)
		for name, parent := range map[string]func() (context.Context, context.CancelFunc){
			"never ends": func() (context.Context, context.CancelFunc) { return context.Background(), func() {} },
			"goes on":    func() (context.Context, context.CancelFunc) { return root, func() {} },
			"has ended":  func() (context.Context, context.CancelFunc) { return context.WithCancel(root) },
		} {
			const n = 1000
			var collected atomic.Int32
			for range n {
				value := new([64]byte)
				runtime.AddCleanup(value, func(*atomic.Int32) { collected.Add(1) }, &collected)
				p, end := parent()
				ctx := lease.Context(context.WithValue(p, valueKey{}, value))
				child, left := context.WithCancel(ctx)
				if child.Err() != nil {
					t.Fatal(child.Err())
				}
				left()
				end()
			}
			redistest.Eventually(t, locktest.Patience, lock+", the parent "+name+": they are collected", func() bool {
				runtime.GC()
				return collected.Load() >= n-1 // the first parent is kept for the others
			})
		}
		locktest.MustUnlock(t, lease)
	}
}

// Contexts that share an end have their own values, and whatever derives from them ends with
// them, for the same cause.
func TestLease_ContextsOfOneEnd(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv)
		mine := errors.New("mine")
		for name, c := range map[string]struct {
			end   func(parent context.CancelCauseFunc, lease *holdfast.Lease)
			cause error
		}{
			"the lease":  {func(_ context.CancelCauseFunc, l *holdfast.Lease) { locktest.MustUnlock(t, l) }, holdfast.ErrReleased},
			"the parent": {func(end context.CancelCauseFunc, _ *holdfast.Lease) { end(mine) }, mine},
		} {
			l := m.Mutex(name)
			lease := locktest.MustLock(t, l)
			root, end := context.WithCancelCause(t.Context())
			var all []context.Context
			for i := range 3 {
				parent, leave := context.WithDeadline(context.WithValue(root, valueKey{}, i), time.Now().Add(time.Hour))
				defer leave()
				for _, p := range []context.Context{context.WithValue(root, valueKey{}, i), parent} {
					ctx := lease.Context(p)
					child, leave := context.WithCancel(ctx)
					defer leave()
					for _, x := range []context.Context{ctx, child, lease.Context(ctx)} {
						if x.Value(valueKey{}) != i || x.Err() != nil {
							t.Errorf("%s: value %v instead of %d, %v", name, x.Value(valueKey{}), i, x.Err())
						}
						want, _ := p.Deadline()
						if got, ok := x.Deadline(); ok == want.IsZero() || !got.Equal(want) {
							t.Errorf("%s: deadline %v, want %v", name, got, want)
						}
						again := locktest.Got(t, l.Lock, x)
						locktest.MustUnlock(t, again)
						all = append(all, x)
					}
				}
			}
			c.end(end, lease)
			for _, x := range all {
				if x.Err() != context.Canceled || context.Cause(x) != c.cause { // at once: no goroutine passes it on
					t.Errorf("%s has ended: %v, because of %v", name, x.Err(), context.Cause(x))
				}
				<-x.Done()
			}
			end(nil)
		}
	})
}

// Parents that have ended are told apart by their causes, even if no call had asked for their
// Done channels before: then they share one.
func TestLease_ContextsOfEndedParents(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		lease := locktest.MustLock(t, locktest.ManagerOn(t, srv).Mutex("a"))
		for _, cause := range []error{errors.New("one"), errors.New("another")} {
			parent, end := context.WithCancelCause(t.Context())
			end(cause)
			if ctx := lease.Context(parent); ctx.Err() != context.Canceled || context.Cause(ctx) != cause {
				t.Errorf("%v, because of %v instead of %v", ctx.Err(), context.Cause(ctx), cause)
			}
		}
		late, leave := context.WithTimeout(t.Context(), time.Millisecond)
		defer leave()
		ctx := lease.Context(late)
		<-ctx.Done()
		locktest.WantErr(t, ctx.Err(), context.DeadlineExceeded, nil)
		locktest.MustUnlock(t, lease)
	})
}

// oddContext cannot be compared, and is none that package context knows.
type oddContext struct {
	context.Context
	done chan struct{}
	_    []int
}

func (c oddContext) Done() <-chan struct{} { return c.done }

func (c oddContext) Err() error {
	select {
	case <-c.done:
		return context.Canceled
	default:
		return nil
	}
}

func TestLease_ContextOfAnOddParent(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		lease := locktest.MustLock(t, locktest.ManagerOn(t, srv).Mutex("a"))
		parent := oddContext{Context: t.Context(), done: make(chan struct{})}
		first, second := lease.Context(parent), lease.Context(parent)
		close(parent.done)
		<-first.Done()
		<-second.Done()
		locktest.WantErr(t, context.Cause(second), context.Canceled, nil)
		locktest.MustUnlock(t, lease)
	})
}

// Contexts are made by many while the lease ends: each of them ends.
func TestLease_ContextsBesideTheEnd(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv)
		for range 50 {
			lease := locktest.MustLock(t, m.Mutex("a"))
			root, cancel := context.WithCancel(t.Context())
			made := make(chan context.Context, 400)
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for range 50 {
						own, end := context.WithCancel(root)
						made <- lease.Context(root)
						made <- lease.Context(own)
						end()
					}
				})
			}
			locktest.MustUnlock(t, lease)
			wg.Wait()
			close(made)
			for ctx := range made {
				<-ctx.Done()
			}
			cancel()
		}
	})
}

// A mutex and a fair lock of one name are one lock in Redis and two here: who has one of them and
// asks for the other is told that it would wait for itself. Other owners wait, in the queue that both kinds share: the release of
// the one grants the other, and says so in its reply.
func TestLock_OfBothKindsByOneOwner(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m := locktest.ManagerOn(t, srv, append(locktest.Unasked, holdfast.WithLease(time.Hour))...)
	for _, locks := range [][2]holdfast.Locker{{m.Mutex("a"), m.FairMutex("a")}, {m.FairMutex("a"), m.Mutex("a")}} {
		lease := locktest.MustLock(t, locks[0])
		ctx, cancel := context.WithTimeout(lease.Context(t.Context()), locktest.Patience)
		for _, l := range []holdfast.Locker{locks[1], several.Multi(t, m.Mutex("0"), locks[1])} {
			_, err := l.TryLock(ctx)
			locktest.WantErr(t, err, holdfast.ErrWouldDeadlock, holdfast.ErrNotAcquired)
			_, err = l.Lock(ctx)
			locktest.WantErr(t, err, holdfast.ErrWouldDeadlock, holdfast.ErrNotAcquired)
		}
		_, err := locks[1].TryLock(holdfast.WithoutOwner(ctx))
		locktest.WantErr(t, err, holdfast.ErrNotAcquired, holdfast.ErrWouldDeadlock)
		got := locktest.Waits(t, locks[1])
		locktest.Queued(t, srv, "redisson_lock_queue:{a}", 1)
		locktest.MustUnlock(t, lease)
		locktest.MustUnlock(t, got())
		cancel()
	}
}

// The context of a Multi re-enters each of its locks and the whole. That of one lock re-enters that
// one only: callers who share it exclude each other on the others.
func TestReentry_OfSeveralLocks(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m := locktest.ManagerOn(t, srv)
	rw := m.RWMutex("c")
	parts := []holdfast.Locker{m.Mutex("a"), m.FairMutex("b"), rw}
	all := several.Multi(t, parts...)
	whole := locktest.MustLock(t, all)
	ctx := whole.Context(t.Context())
	before := m.Stats().Commands
	for _, l := range append(parts, all, rw.RLocker(), several.Multi(t, parts[2], parts[0])) {
		for _, try := range []func(context.Context) (*holdfast.Lease, error){l.Lock, l.TryLock} {
			again, err := try(ctx)
			if err != nil {
				t.Fatalf("%T: %v", l, err)
			}
			_, err = l.TryLock(holdfast.WithoutOwner(ctx))
			locktest.WantErr(t, err, holdfast.ErrNotAcquired, holdfast.ErrWouldDeadlock)
			if err := again.Unlock(ctx); err != nil {
				t.Errorf("%T: %v", l, err)
			}
		}
	}
	redistest.Want(t, m.Stats().Commands-before, 0, "%d commands")
	locktest.MustUnlock(t, whole)

	a := locktest.MustLock(t, parts[0])
	ctx = a.Context(t.Context())
	first, err := all.Lock(ctx) // re-enters a, and takes the others for itself
	redistest.Must(t, err)
	for _, l := range []holdfast.Locker{all, parts[1], rw, rw.RLocker(), several.Multi(t, parts[1], m.Mutex("z"))} {
		_, err := l.TryLock(ctx)
		locktest.WantErr(t, err, holdfast.ErrNotAcquired, holdfast.ErrWouldDeadlock)
	}
	locktest.MustUnlock(t, first)
	locktest.MustUnlock(t, a)
}

// A caller that waits for a lock of its own process learns that.
func TestLock_SaysThatThisProcessHoldsIt(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, other := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv)
		for _, l := range []struct{ held, wanted, elsewhere holdfast.Locker }{
			{m.Mutex("a"), m.Mutex("a"), other.Mutex("a")},
			{m.FairMutex("a"), m.FairMutex("a"), other.FairMutex("a")},
			{m.RWMutex("b"), m.RWMutex("b").RLocker(), other.RWMutex("b")},
			{m.RWMutex("b").RLocker(), m.RWMutex("b"), other.RWMutex("b")},
		} {
			lease := locktest.MustLock(t, l.held)
			for _, by := range []holdfast.Locker{l.wanted, l.elsewhere} {
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				_, err := by.Lock(ctx)
				cancel()
				locktest.WantErr(t, err, holdfast.ErrNotAcquired, nil)
				if says := strings.Contains(fmt.Sprint(err), "this process holds it"); says != (by == l.wanted) {
					t.Errorf("%T: %v", by, err)
				}
			}
			locktest.MustUnlock(t, lease)
		}
	})
}

// A copy acts on the lease that it is a copy of, and go vet reports it, as it does each copy of what has a field
// whose pointer is a sync.Locker.
func TestLease_ACopyIsTheSameLease(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		m := locktest.ManagerOn(t, redistest.Start(t))
		for name, l := range map[string]holdfast.Locker{"mutex": m.Mutex("a"), "multi": several.Multi(t, m.Mutex("b"), m.Mutex("c"))} {
			lease, seen := locktest.MustLock(t, l), new(holdfast.Lease)
			reflect.ValueOf(seen).Elem().Set(reflect.ValueOf(lease).Elem()) // what go vet does not see
			ctx := seen.Context(t.Context())
			if seen.Name() != lease.Name() || !seen.Valid() || !seen.Deadline().Equal(lease.Deadline()) {
				t.Errorf("%s: the copy is of %q, valid %v until %v", name, seen.Name(), seen.Valid(), seen.Deadline())
			}
			if err := seen.Unlock(ctx); err != nil || lease.Valid() || lease.Err() != holdfast.ErrReleased {
				t.Errorf("%s: Unlock of the copy: %v, and the lease is valid %v, %v", name, err, lease.Valid(), lease.Err())
			}
			locktest.WantErr(t, lease.Unlock(t.Context()), holdfast.ErrNotHeld, nil)
			locktest.MustUnlock(t, locktest.MustLock(t, l))
		}
	})
	vetted := false
	for f := range reflect.TypeFor[holdfast.Lease]().Fields() {
		_, ok := reflect.New(f.Type).Interface().(sync.Locker)
		vetted = vetted || ok
	}
	if !vetted {
		t.Error("go vet does not see a copy")
	}
}
