package election

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// After a loss Lead cancels fn's context, waits for fn, and campaigns again.
func TestLead_CampaignsAgainAfterALoss(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv)
		inside, calls := 0, 0
		var numbers []uint64
		err := m.Election("seat").Lead(t.Context(), "a", func(ctx context.Context, term *holdfast.Term) error {
			inside++
			defer func() { inside-- }()
			if inside != 1 || ctx.Err() != nil || !term.Lease().Valid() {
				t.Errorf("call %d: %d inside, %v", calls, inside, ctx.Err())
			}
			numbers = append(numbers, term.Number())
			if calls++; calls == 3 {
				return nil
			}
			redistest.Check(t, locktest.ErrOf(m.ForceUnlock(context.Background(), "seat")))
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, holdfast.ErrLeaseLost) {
				t.Errorf("call %d: %v", calls, cause)
			}
			return errors.New("not looked at")
		})
		if err != nil || calls != 3 || numbers[0] >= numbers[1] || numbers[1] >= numbers[2] {
			t.Errorf("%v after the terms %v", err, numbers)
		}
		redistest.Want(t, srv.Admin().Exists(t.Context(), "seat").Val(), 0, "the lock is held")
	})
}

// E4: if Redis is silent, fn's context ends a tenth of the lease before the deadline, and not before.
func TestLead_EndsAheadOfTheDeadline(t *testing.T) {
	redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
		m, proxy := locktest.ManagerVia(t, srv, holdfast.WithLease(10*time.Second))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_ = m.Election("seat").Lead(ctx, "a", func(work context.Context, term *holdfast.Term) error {
			time.Sleep(time.Minute) // renewals move the deadline on
			if work.Err() != nil {
				t.Errorf("while Redis answers: %v", context.Cause(work))
			}
			proxy.BlackHole(true)
			<-work.Done()
			cancel()
			left := time.Until(term.Lease().Deadline())
			if !errors.Is(context.Cause(work), holdfast.ErrLeaseLost) || !term.Lease().Valid() || left < 900*time.Millisecond || left > 1100*time.Millisecond {
				t.Errorf("it ends %v before the deadline: %v", left, context.Cause(work))
			}
			proxy.BlackHole(false)
			return nil
		})
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		_ = m.Election("seat", holdfast.WithMaxHold(time.Minute)).Lead(ctx, "a", func(work context.Context, term *holdfast.Term) error {
			<-work.Done()
			cancel()
			left := time.Until(term.Lease().Deadline())
			if !errors.Is(context.Cause(work), holdfast.ErrMaxHold) || left < 900*time.Millisecond || left > 1100*time.Millisecond {
				t.Errorf("it ends %v before the maximum: %v", left, context.Cause(work))
			}
			return nil
		})
	})
}

// What fn returns is what Lead returns, and the seat is free then.
func TestLead_ReturnsWhatFnDoes(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		e := candidate(t, srv)
		bad := errors.New("bad")
		free := func(after string) {
			t.Helper()
			if srv.Admin().Exists(t.Context(), "seat").Val() != 0 || e.Term() != nil {
				t.Errorf("after %s the lock is held", after)
			}
		}
		redistest.Want(t, e.Lead(t.Context(), "a", func(context.Context, *holdfast.Term) error { return bad }), bad, "of an error: %v")
		free("an error")
		if err := e.Lead(t.Context(), "a", func(ctx context.Context, term *holdfast.Term) error { return term.Resign(ctx) }); err != nil {
			t.Errorf("of a term that fn has ended: %v", err)
		}
		free("Resign")
		func() {
			defer func() {
				redistest.Want(t, recover(), any(bad), "the panic is lost")
			}()
			_ = e.Lead(t.Context(), "a", func(context.Context, *holdfast.Term) error { panic(bad) })
		}()
		free("a panic")

		ctx, cancel := context.WithCancelCause(t.Context())
		err := e.Lead(ctx, "a", func(work context.Context, _ *holdfast.Term) error {
			cancel(bad)
			<-work.Done()
			return context.Cause(work)
		})
		redistest.Want(t, err, bad, "of a context that ends in fn: %v")
		free("the end of ctx")

		term := campaign(t, candidate(t, srv), "b")
		waiting, stop := context.WithCancelCause(t.Context())
		result := redistest.Begin(func() error { return e.Lead(waiting, "a", never(t)) })
		locktest.Queued(t, srv, "redisson_lock_queue:{seat}", 1)
		stop(bad)
		redistest.Want(t, redistest.Next(t, result, "nothing comes"), bad, "of a context that ends while it waits: %v")
		resign(t, term)
	})
}

// The leader's process is killed: its term ends with its TTL, then the next one leads, and observers see a vacancy in between or not.
func TestLead_AfterACrash(t *testing.T) {
	redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
		m, proxy := locktest.ManagerVia(t, srv, holdfast.WithLease(2*time.Second))
		first := campaign(t, m.Election("seat"), "a")
		proxy.BlackHole(true)
		began := time.Now()
		second := campaign(t, candidate(t, srv), "b")
		if took := time.Since(began); took > 2500*time.Millisecond || first.Lease().Valid() || second.Number() <= first.Number() {
			t.Errorf("the next one leads after %v, the first is valid: %v", took, first.Lease().Valid())
		}
		resign(t, second)
		proxy.BlackHole(false)
	})
}

// Followers learn of a change by message, and cost no command in between.
func TestObserve_ByMessage(t *testing.T) {
	redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
		a := candidate(t, srv)
		states := observe(t, candidate(t, srv, holdfast.WithPollInterval(time.Hour)))
		redistest.Next(t, states, "nothing comes")
		time.Sleep(time.Second) // it is subscribed
		for range 3 {
			began := time.Now()
			term := campaign(t, a, "a")
			if l := redistest.Next(t, states, "nothing comes"); l.Value != "a" || time.Since(began) > 100*time.Millisecond {
				t.Errorf("observed %+v after %v", l, time.Since(began))
			}
			began = time.Now()
			resign(t, term)
			if l := redistest.Next(t, states, "nothing comes"); l.Term != 0 || time.Since(began) > 100*time.Millisecond {
				t.Errorf("observed %+v after %v", l, time.Since(began))
			}
		}
	})
}

// A record lives for a day: a leader says again what it has said.
func TestElection_TheRecordOutlivesADay(t *testing.T) {
	redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
		a := candidate(t, srv)
		term := campaign(t, a, "a")
		time.Sleep(30 * time.Hour)
		wantLeader(t, candidate(t, srv), "a")
		resign(t, term)
	})
}

func never(t *testing.T) func(context.Context, *holdfast.Term) error {
	return func(context.Context, *holdfast.Term) error { t.Error("called"); return nil }
}
