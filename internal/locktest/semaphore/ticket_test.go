package semaphore

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// The scenarios of tickets run for semaphores as well. These are about some of the permits, beside others.

func detach(t *testing.T, l *holdfast.Lease, d time.Duration) string {
	t.Helper()
	ticket, err := l.Detach(t.Context(), d)
	redistest.Must(t, err)
	return ticket
}

// detached returns the permits that are left to a ticket.
func detached(t *testing.T, m *holdfast.Manager) (all []holdfast.Holder) {
	t.Helper()
	for _, h := range locktest.Inspected(t, m, name).Holders {
		if h.Detached {
			all = append(all, h)
		}
	}
	return all
}

// T1, T2, T6: a ticket stands for as many permits as the lease had, and the others go on.
func TestTicket_SomePermits(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		giver := locktest.ManagerOn(t, srv, holdfast.WithIdentity("front"))
		s, m := giver.Semaphore(name, 1002), locktest.ManagerOn(t, srv, holdfast.WithIdentity("worker"), holdfast.WithWanted(), holdfast.WithFencing(), holdfast.WithValue("x"))
		ticket := detach(t, acquire(t, s, 1000), time.Minute)
		wantState(t, srv, 1002, 2)
		refused(t, s, 3)
		unlock(t, acquire(t, s, 2))
		redistest.Eventually(t, locktest.Patience, "the giver says who it is", func() bool {
			all := detached(t, m)
			return len(all) == 1000 && all[0].Identity != nil && all[0].Identity.App == "front" && all[999].TTL > 30*time.Second
		})
		l, err := m.Attach(t.Context(), ticket)
		redistest.Must(t, err)
		redistest.Want(t, l.Permits(), 1000, "the lease has %d permits")
		redistest.Want(t, len(detached(t, m)), 0, "%d permits are detached")
		_, err = giver.Attach(t.Context(), ticket)
		locktest.WantErr(t, err, holdfast.ErrLeaseLost, nil)
		wantState(t, srv, 1002, 2)
		unlock(t, l)
		wantState(t, srv, 1002, 1002)
	})
}

// T5, T6: a ticket or a lease of which one permit was taken away is lost, and makes no permits. The others return when their time is over.
func TestTicket_OnePermitIsTakenAway(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv, holdfast.WithLease(500*time.Millisecond))
		s := m.Semaphore(name, 4)
		takeOne := func() {
			t.Helper()
			owner := locktest.Inspected(t, m, name).Holders[0].Owner
			if freed, err := locktest.ManagerOn(t, srv).ForceUnlockOf(t.Context(), name, owner); !freed || err != nil {
				t.Fatalf("ForceUnlockOf: %v, %v", freed, err)
			}
		}
		back := func() {
			t.Helper()
			unlock(t, acquire(t, s, 4)) // waits for the end of the others
			wantState(t, srv, 4, 4)
		}
		ticket := detach(t, acquire(t, s, 3), time.Second)
		takeOne()
		wantState(t, srv, 4, 2)
		_, err := m.Attach(t.Context(), ticket)
		locktest.WantErr(t, err, holdfast.ErrLeaseLost, nil)
		wantState(t, srv, 4, 2)
		back()

		fixed := m.Semaphore(name, 4, holdfast.WithFixedLease(500*time.Millisecond))
		lost := acquire(t, fixed, 2)
		takeOne()
		ticket, err = lost.Detach(t.Context(), time.Minute)
		locktest.WantErr(t, err, holdfast.ErrLeaseLost, nil)
		redistest.Want(t, ticket, "", "the ticket %q cannot work")
		wantState(t, srv, 4, 3)
		back()

		stays := acquire(t, m.Semaphore(name, 4, holdfast.WithFixedLease(500*time.Millisecond), holdfast.WithHoldAtLeast(400*time.Millisecond)), 2)
		takeOne()
		locktest.WantErr(t, stays.Unlock(t.Context()), holdfast.ErrLeaseLost, nil)
		wantState(t, srv, 4, 3)
		back()
	})
}

// Redis does not forget a semaphore before its ticket, nor before the lease that attaches it.
func TestTicket_IdleTTL(t *testing.T) {
	redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv, holdfast.WithLease(time.Second))
		s := m.Semaphore(name, 2, holdfast.WithIdleTTL(time.Second))
		for _, lease := range []time.Duration{time.Second, time.Hour} {
			ticket := detach(t, acquire(t, s, 1), time.Minute)
			time.Sleep(50 * time.Second) // in fake time
			wantState(t, srv, 2, 1)
			l, err := m.Attach(t.Context(), ticket, holdfast.WithLease(lease))
			redistest.Must(t, err)
			time.Sleep(time.Minute)
			wantState(t, srv, 2, 1)
			if !l.Valid() {
				t.Errorf("it ended with %v", l.Err())
			}
			unlock(t, l)
		}
		time.Sleep(time.Hour)
		redistest.Want(t, srv.Admin().Exists(t.Context(), name, held).Val(), 0, "it is still there")
	})
}

// Each waiter learns of the earlier end of a ticket, also if it is not the first, and becomes that only afterwards.
func TestTicket_EndsBeforeWaitersThought(t *testing.T) {
	for _, c := range []struct {
		first string
		goes  func(t *testing.T, other *holdfast.Lease, leave context.CancelFunc, first <-chan holdfast.Result)
	}{
		{"is served", func(t *testing.T, other *holdfast.Lease, _ context.CancelFunc, first <-chan holdfast.Result) {
			unlock(t, other)
			told(t, first)
		}},
		{"leaves", func(_ *testing.T, _ *holdfast.Lease, leave context.CancelFunc, first <-chan holdfast.Result) {
			leave()
			<-first
		}},
	} {
		t.Run("the first "+c.first, func(t *testing.T) {
			redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
				long := append([]holdfast.Option{holdfast.WithLease(time.Minute)}, locktest.Unasked...)
				two, one := acquire(t, user(t, srv, 3, long...), 2), acquire(t, user(t, srv, 3, long...), 1)
				ctx, leave := context.WithCancel(t.Context())
				first := user(t, srv, 3, long...).AcquireAsync(ctx, 1)
				stands(t, srv, 1)
				second := user(t, srv, 3, long...).AcquireAsync(t.Context(), 2)
				stands(t, srv, 2)
				began := time.Now()
				detach(t, two, 2*time.Second)
				c.goes(t, one, leave, first)
				granted(t, second)
				redistest.WantMost(t, time.Since(began), 2100*time.Millisecond, "it waited for %v")
			})
		})
	}
}
