package locktest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// onLog is a handler that does something else at each record.
type onLog struct {
	slog.Handler
	do func()
}

func (onLog) Enabled(context.Context, slog.Level) bool { return true }

func (h onLog) Handle(context.Context, slog.Record) error { h.do(); return nil }

// looking is a context whose methods look at a lease.
type looking struct {
	context.Context
	lease *holdfast.Lease
}

func (c looking) Done() <-chan struct{} { c.lease.Valid(); return c.Context.Done() }
func (c looking) Err() error            { c.lease.Valid(); return c.Context.Err() }
func (c looking) Value(key any) any     { c.lease.Valid(); return c.Context.Value(key) }

type asyncLocker interface {
	LockAsync(ctx context.Context) <-chan holdfast.Result
}

var hygieneScenarios = map[string]func(*Env){
	// AC-99, H5
	"CloseEndsEverything": func(e *Env) {
		m, other := e.Manager(), e.Manager()
		const n = 50
		var held []*holdfast.Lease
		for i := range n {
			held = append(held, e.MustLock(e.kind.Lock(m, fmt.Sprintf("%s:%d", e.Key, i))))
		}
		blocker := e.MustLock(e.Lock(other))
		results := make(chan error, n)
		for i := range n {
			name := e.Key // half wait for another process, half for this one
			if i%2 == 0 {
				name = fmt.Sprintf("%s:%d", e.Key, i)
			}
			go func() {
				_, err := e.kind.Lock(m, name).Lock(bg)
				results <- err
			}()
		}
		e.Parked(m, n)
		ctx := held[0].Context(bg)
		start := time.Now()
		if err := m.Close(bg); err != nil {
			e.Errorf("Close: %v", err)
		}
		for range n {
			e.WantErr(<-results, holdfast.ErrClosed)
		}
		redistest.WantMost(e, time.Since(start), e.bound(time.Second+prompt), "took %v")
		e.Worst("H5:Close-of-50-holds", time.Since(start))
		e.WantErr(context.Cause(ctx), holdfast.ErrClosed)
		for _, l := range held {
			e.WantErr(l.Err(), holdfast.ErrClosed)
			e.WantErr(l.Unlock(bg), holdfast.ErrClosed)
			redistest.Want(e, l.Valid(), false, "valid after Close")
		}
		for _, lock := range []func(context.Context) (*holdfast.Lease, error){e.Lock(m).Lock, e.Lock(m).TryLock} {
			_, err := lock(bg)
			e.WantErr(err, holdfast.ErrClosed)
		}
		_, err := m.Inspect(bg, e.Key)
		e.WantErr(err, holdfast.ErrClosed)
		if err := m.Close(bg); err != nil {
			e.Errorf("the second Close: %v", err)
		}
		e.srv.RequireNoKeys(e, e.Key) // blocker's
		e.MustUnlock(blocker)
		e.within(e.bound(prompt), "no keys", func() bool { return len(e.srv.Keys()) == 0 })
	},

	"CloseIsBoundedWhateverRedisDoes": func(e *Env) {
		m := e.Manager()
		l := e.MustLock(e.Lock(m))
		e.Server().Pause()
		start := time.Now()
		err := m.Close(bg)
		redistest.WantMost(e, time.Since(start), e.bound(time.Second+prompt), "took %v")
		e.WantErr(err, holdfast.ErrUnavailable)
		e.WantErr(l.Err(), holdfast.ErrClosed)
	},

	// A program that ends by a signal closes under the context that the signal has ended. Some
	// of the rounds may be too slow for what Close has then.
	"CloseUnderAnEndedContextReleases": func(e *Env) {
		ended, cancel := context.WithCancel(bg)
		cancel()
		const rounds = 20
		released := 0
		for i := range rounds {
			m := e.Manager(holdfast.WithLease(time.Hour))
			name := fmt.Sprint(e.Key, i)
			if i%2 == 0 { // the others have nothing to release
				e.MustLock(e.kind.Lock(m, name))
			}
			if m.Close(ended) == nil {
				released++
				redistest.Want(e, e.srv.Admin().Exists(bg, name).Val(), 0, "Close returned nil, and the lock is there")
			}
		}
		if released == 0 || e.kind.Virtual && released < rounds*3/4 {
			e.Errorf("%d of %d were closed properly", released, rounds)
		}
	},

	// So is one that comes while another is at work: or the program would end under its hands.
	"CloseBesideAnotherGivesItTime": func(e *Env) {
		m, p := e.Via()
		e.MustLock(e.Lock(m))
		gate := p.HoldRequest(releaseOf(e.Key))
		closed := redistest.Begin(func() error { return m.Close(bg) })
		gate.Wait(e)
		ended, cancel := context.WithTimeout(bg, 0)
		defer cancel()
		start := time.Now()
		e.WantErr(m.Close(ended), holdfast.ErrUnavailable, context.DeadlineExceeded)
		if d := time.Since(start); d < 100*time.Millisecond {
			e.Errorf("returned after %v", d)
		}
		gate.Release()
		e.WantErr(m.Close(bg), <-closed)
	},

	// A release that Redis denies is over as soon as one that it confirms.
	"CloseTellsOfDeniedReleases": func(e *Env) {
		client, allow := e.limited()
		m := e.ManagerOn(client)
		e.MustLock(e.Lock(m))
		allow("resetkeys")
		err := m.Close(bg)
		if e.WantErr(err, holdfast.ErrUnavailable); err != nil && !strings.Contains(err.Error(), "NOPERM") {
			e.Errorf("%v does not say NOPERM", err)
		}
		if len(e.Holders()) == 0 {
			e.Error("it was released")
		}
	},

	// The goroutine that Close waits for is the one that calls it.
	"CloseFromTheLoggerIsBounded": func(e *Env) {
		closed := make(chan error, 1)
		var m *holdfast.Manager
		ready := make(chan struct{})
		m = e.Manager(holdfast.WithLogger(slog.New(onLog{slog.DiscardHandler, func() {
			<-ready
			select {
			case closed <- m.Close(bg):
			default:
			}
		}})))
		close(ready)
		e.MustLock(e.Lock(m, holdfast.WithFixedLease(100*time.Millisecond))) // it is lost
		e.WantErr(redistest.Next(e, closed, "Close hangs"), holdfast.ErrUnavailable)
	},

	// A context may be code of the user that looks at a lease of the lock.
	"ContextsMayLookAtLeases": func(e *Env) {
		m := e.Manager()
		held := e.MustLock(e.Lock(m))
		wait := func(begin func(ctx context.Context, failed chan<- error)) {
			ctx, cancel := context.WithCancel(bg)
			defer cancel()
			failed := make(chan error, 1)
			go begin(looking{ctx, held}, failed)
			e.Parked(m, 1)
			cancel()
			e.WantErr(redistest.Next(e, failed, "it hangs"), holdfast.ErrNotAcquired, context.Canceled)
		}
		wait(func(ctx context.Context, failed chan<- error) {
			_, err := e.Lock(m).Lock(ctx)
			failed <- err
		})
		if l, ok := e.Lock(m).(asyncLocker); ok { // the read side by itself is none
			wait(func(ctx context.Context, failed chan<- error) { failed <- (<-l.LockAsync(ctx)).Err })
		}
		e.MustUnlock(held)
	},

	// AC-97, scaled: every way out of a wait, under load, leaves nothing.
	"ChurnLeavesNothing": func(e *Env) {
		m := e.Manager(holdfast.WithLease(time.Hour)) // nothing is gone by itself
		e.MustUnlock(e.MustLock(e.Lock(m)))
		var wg sync.WaitGroup
		const goroutines, cycles = 8, 300
		for g := range goroutines {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			wg.Go(func() {
				for range cycles {
					l := e.kind.Lock(m, fmt.Sprintf("%s:%d", e.Key, rng.IntN(3)))
					ctx, cancel := context.WithTimeout(bg, time.Duration(rng.Int64N(int64(3*time.Millisecond))))
					lock := l.Lock
					if rng.IntN(3) == 0 {
						lock = l.TryLock
					}
					got, err := lock(ctx)
					cancel()
					switch {
					case err == nil:
						e.MustUnlock(got)
					case !errors.Is(err, holdfast.ErrNotAcquired) && !errors.Is(err, context.DeadlineExceeded):
						e.Error(err)
					}
				}
			})
		}
		wg.Wait()
		e.Clean(m, Tombstones)
		redistest.Check(e, m.Close(bg))
		e.Eventually("its connections stay the client's", func() bool { return e.pubSubClients() == 0 })
	},

	// AC-98, scaled: a name that is not in use costs nothing.
	"NamesAreForgotten": func(e *Env) {
		m := e.Manager()
		round := func(n int) {
			var wg sync.WaitGroup
			for g := range 8 {
				wg.Go(func() {
					for i := range n / 8 {
						e.MustUnlock(e.MustLock(e.kind.Lock(m, fmt.Sprintf("%s:%d:%d", e.Key, g, i), holdfast.WithFencing())))
					}
				})
			}
			wg.Wait()
		}
		round(2000)
		e.Eventually("nothing known of any lock", func() bool {
			s := m.Stats()
			return s.Locks == 0 && s.Held == 0
		})
	},

	// Stats and Inspect tell what is there.
	"InspectTellsWhatIsThere": func(e *Env) {
		m := e.Manager()
		info, err := e.Inspect(m)
		if err != nil || info.Held || info.Kind != holdfast.KindFree || info.Name != e.Key {
			e.Errorf("free: %+v, %v", info, err)
		}
		l := e.MustLock(e.Lock(m, holdfast.WithFencing()))
		info, err = e.Inspect(e.Manager())
		if err != nil || !info.Held || len(info.Holders) != 1 || !info.Holders[0].Holdfast ||
			info.Holders[0].Holds != 1 || info.TTL < lease/2 || info.TTL > lease || info.Token != l.Token() {
			e.Errorf("held: %+v, %v", info, err)
		}
		e.MustUnlock(l)
		e.srv.Admin().HSet(bg, e.Key, "mode", "write", "0c2d0a52-7b0c-4f0e-9d3b-3f7a5f1c6e11:1:write", 2)
		info, err = e.Inspect(m)
		if err != nil || info.Kind != holdfast.KindWrite || info.TTL != -1 || len(info.Holders) != 1 ||
			!info.Holders[0].Write || info.Holders[0].Holds != 2 || info.Holders[0].Holdfast {
			e.Errorf("written by another: %+v, %v", info, err)
		}
		e.srv.Admin().Do(bg, "PEXPIRE", e.Key, int64(math.MaxInt32)*24*60*60*1000) // as many days: 5.9 million years
		if info, err = e.Inspect(m); err != nil || info.TTL != math.MaxInt64 {
			e.Errorf("for ever, almost: %+v, %v", info, err)
		}
		e.srv.Admin().Del(bg, e.Key)
		e.srv.Admin().Set(bg, e.Key, "x", 0)
		info, err = e.Inspect(m)
		if err != nil || info.Held || info.Kind != holdfast.KindOther {
			e.Errorf("a string: %+v, %v", info, err)
		}
		_, err = m.Inspect(bg, "")
		e.WantErr(err, holdfast.ErrInvalidName)
	},
}
