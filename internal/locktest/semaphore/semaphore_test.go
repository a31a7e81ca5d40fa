package semaphore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// P1, P3, P9: no more permits are held than there are, and at rest all are available.
func TestSemaphore_Bounds(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		a, b := user(t, srv, 3), user(t, srv, 3)
		first, second := acquire(t, a, 1), acquire(t, b, 2)
		wantState(t, srv, 3, 0)
		refused(t, a, 1)
		refused(t, b, 1)
		unlock(t, first)
		third := acquire(t, b, 1)
		refused(t, a, 1)
		unlock(t, second, third)
		wantState(t, srv, 3, 3)
		redistest.Want(t, srv.Admin().Exists(t.Context(), held, queue, "holdfast_tombstones:{downloads}").Val(), 0, "%d keys are left")
	})
}

// A caller waits for a release of another process, which grants the permits to it.
func TestSemaphore_WaitsForOthers(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		a := user(t, srv, 2, locktest.Unasked...)
		mb := locktest.ManagerOn(t, srv, locktest.Unasked...)
		b := mb.Semaphore(name, 2)
		first, second := acquire(t, a, 1), acquire(t, a, 1)
		both := waiting(t, mb, b, 2)
		stands(t, srv, 1)
		unlock(t, first)
		refused(t, a, 1) // the one that waits wants two, and is not passed by one that wants less
		unlock(t, second)
		l := granted(t, both)
		wantState(t, srv, 2, 0)
		unlock(t, l)
		wantState(t, srv, 2, 2)
	})
}

// P7: of two processes that wait, the first gets its permits first, whatever they want.
func TestSemaphore_TurnsOfProcesses(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		mb, mc := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv)
		all := acquire(t, user(t, srv, 4), 4)
		big := waiting(t, mb, mb.Semaphore(name, 4), 3)
		stands(t, srv, 1)
		small := waiting(t, mc, mc.Semaphore(name, 4), 2)
		stands(t, srv, 2)
		unlock(t, all)
		l := granted(t, big)
		stands(t, srv, 1)
		wantState(t, srv, 4, 1)
		unlock(t, l)
		unlock(t, granted(t, small))
	})
}

// A local hand-off costs no command.
func TestSemaphore_LocalHandoff(t *testing.T) {
	redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv, append(locktest.Unasked, holdfast.WithHandoffSlice(time.Hour))...)
		s := m.Semaphore(name, 2)
		one, two := acquire(t, s, 1), acquire(t, s, 1)
		third, fourth := waiting(t, m, s, 1), waiting(t, m, s, 1)
		stands(t, srv, 1)
		before := m.Stats().Commands
		unlock(t, one)
		l := granted(t, third)
		redistest.Want(t, m.Stats().Commands-before, 0, "%d commands")
		unlock(t, two)
		unlock(t, granted(t, fourth), l)
		redistest.Eventually(t, locktest.Patience, "the queue is empty", func() bool { return srv.Admin().Exists(t.Context(), queue).Val() == 0 })
		wantState(t, srv, 2, 2)
	})
}

// A process that waits itself is no other process that waits: it goes on passing its permits on when the slice is over.
func TestSemaphore_OwnPlaceIsNoDemand(t *testing.T) {
	redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
		const slice = 10 * time.Millisecond
		m := locktest.ManagerOn(t, srv, append(locktest.Unasked, holdfast.WithHandoffSlice(slice))...)
		s := m.Semaphore(name, 1)
		l := acquire(t, s, 1)
		var results []<-chan holdfast.Result
		for range 4 {
			results = append(results, waiting(t, m, s, 1))
		}
		stands(t, srv, 1)
		for _, next := range results {
			time.Sleep(2 * slice) // in fake time: the question of the slice before is answered
			unlock(t, l)
			l = granted(t, next)
		}
		redistest.Want(t, m.Stats().HandedOff, 4, "%d of 4 leases were passed on here")
		unlock(t, l)
	})
}

// The process has passed the permit on to its waiter, whose place in the queue is given up late: it does not want what it has.
func TestSemaphore_OwnPlaceIsNotWanted(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, p := locktest.ManagerVia(t, srv, locktest.Unasked...)
		s := m.Semaphore(name, 1)
		first := acquire(t, s, 1)
		next := waiting(t, m, s, 1)
		stands(t, srv, 1)
		gate := p.HoldRequest(locktest.ScriptOn(name, "permit_release"))
		unlock(t, first)
		l := granted(t, next)
		gate.Wait(t)
		select {
		case <-l.Wanted():
			t.Error("no other caller waits")
		case <-time.After(3 * time.Second):
		}
		gate.Release()
		unlock(t, l)
	})
}

// Callers of a process that want another number come in their turn.
func TestSemaphore_MixedNumbers(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv, locktest.Unasked...)
		s := m.Semaphore(name, 8)
		all := acquire(t, s, 8)
		var results []<-chan holdfast.Result
		for _, n := range []int{5, 3, 1, 8, 2} {
			results = append(results, waiting(t, m, s, n))
		}
		unlock(t, all)
		five, three := granted(t, results[0]), granted(t, results[1])
		wantState(t, srv, 8, 0)
		unlock(t, five)
		one := granted(t, results[2])
		wantState(t, srv, 8, 4)
		unlock(t, one, three)
		eight := granted(t, results[3])
		unlock(t, eight)
		unlock(t, granted(t, results[4]))
		wantState(t, srv, 8, 8)
	})
}

// P10: a call that could never succeed says so.
func TestSemaphore_TooMany(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv, holdfast.WithPollInterval(100*time.Millisecond))
		s := m.Semaphore(name, 4)
		for _, call := range []func() (*holdfast.Lease, error){
			func() (*holdfast.Lease, error) { return s.Acquire(t.Context(), 5) },
			func() (*holdfast.Lease, error) { return s.TryAcquire(t.Context(), 5) },
		} {
			if l, err := call(); !errors.Is(err, holdfast.ErrInvalidOption) {
				t.Fatalf("five of four: %v, %v", l, err)
			}
		}
		unlock(t, acquire(t, m.Semaphore(name, 2), 3)) // there are four in Redis
		redistest.Must(t, s.SetPermits(t.Context(), 2))
		refused(t, s, 3)
		three, four := waiting(t, m, s, 3), waiting(t, m, s, 4)
		unlock(t, acquire(t, s, 2)) // it is not in the way
		redistest.Must(t, s.SetPermits(t.Context(), 7))
		unlock(t, granted(t, three), granted(t, four))
		wantState(t, srv, 7, 7)
	})
}

// SetPermits grants what it adds, and a cut waits until enough have come back.
func TestSemaphore_SetPermits(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv, locktest.Unasked...)
		a, b := user(t, srv, 1, locktest.Unasked...), m.Semaphore(name, 1)
		first := acquire(t, a, 1)
		next := waiting(t, m, b, 1)
		stands(t, srv, 1)
		redistest.Must(t, a.SetPermits(t.Context(), 2))
		second := granted(t, next)
		wantState(t, srv, 2, 0)
		if err := a.SetPermits(t.Context(), 0); err != nil { // pauses it
			t.Fatal(err)
		}
		wantState(t, srv, 0, -2)
		if !first.Valid() || !second.Valid() {
			t.Error("a cut has ended a lease")
		}
		unlock(t, first, second)
		refused(t, a, 1)
		for _, damaged := range []string{"damaged", "07", "-0"} { // INCRBY takes none of them
			srv.Admin().Set(t.Context(), name, damaged, 0)
			if _, err := a.TryAcquire(t.Context(), 1); !errors.Is(err, holdfast.ErrWrongKind) {
				t.Errorf("the number is %s: %v", damaged, err)
			}
			redistest.Must(t, a.SetPermits(t.Context(), 3))
			wantState(t, srv, 3, 3)
		}
	})
}

// The callers of a paused semaphore hear that it goes on, and get the permits without another poll.
func TestSemaphore_Paused(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		a, m := user(t, srv, 2), locktest.ManagerOn(t, srv, locktest.Unasked...)
		redistest.Must(t, a.SetPermits(t.Context(), 0))
		one, two := waiting(t, m, m.Semaphore(name, 2), 1), waiting(t, m, m.Semaphore(name, 2), 2)
		redistest.Eventually(t, locktest.Patience, "they listen", func() bool { return srv.NumSub("redisson_sc:{downloads}") == 1 })
		redistest.Must(t, a.SetPermits(t.Context(), 2))
		unlock(t, told(t, one)) // in the order of their calls
		unlock(t, granted(t, two))
		wantState(t, srv, 2, 2)
	})
}

// Bad input is refused before anything is sent.
func TestSemaphore_Refuses(t *testing.T) {
	m := locktest.ManagerFor(t, locktest.Offline(t), holdfast.WithFencing())
	s := m.Semaphore(name, 4)
	var none context.Context
	rest := func(opts ...holdfast.LockOption) error {
		_, err := m.Semaphore(name, 4, opts...).Acquire(t.Context(), 1)
		return err
	}
	try := func(s *holdfast.Semaphore, n int) error { _, err := s.TryAcquire(t.Context(), n); return err }
	_, noMulti := holdfast.NewMulti(s.Locker(0))
	_, noRedlock := holdfast.NewRedlock(s.Locker(1), s.Locker(1), s.Locker(1))
	for what, err := range map[string]error{
		"none": try(s, 0), "too many": try(s, 1001), "no permits": try(m.Semaphore(name, 0), 1), "far too many": try(m.Semaphore(name, 1<<20+1), 1),
		"fencing": rest(holdfast.WithFencing()), "linger": rest(holdfast.WithLinger(time.Second)), "idle": rest(holdfast.WithIdleTTL(time.Second)),
		"nil": try(nil, 1), "zero": try(new(holdfast.Semaphore), 1), "zero, two": try(new(holdfast.Semaphore), 2), "nil Manager": try((*holdfast.Manager)(nil).Semaphore(name, 1), 1),
		"set": s.SetPermits(t.Context(), -1), "set nil": (*holdfast.Semaphore)(nil).SetPermits(t.Context(), 1), "nil ctx": s.SetPermits(none, 1),
		"async": (<-s.AcquireAsync(t.Context(), 0)).Err, "Multi": noMulti, "Redlock": noRedlock,
		"idle of a mutex": func() error {
			_, err := m.Mutex(name, holdfast.WithIdleTTL(time.Hour)).TryLock(t.Context())
			return err
		}(),
	} {
		if !errors.Is(err, holdfast.ErrInvalidOption) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := m.Semaphore("{x", 1).Acquire(t.Context(), 1); !errors.Is(err, holdfast.ErrInvalidName) {
		t.Errorf("a bad name: %v", err)
	}
}
