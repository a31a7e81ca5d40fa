package engine_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/seam"
)

// One request asks for the places of many callers. When it fails, that is one trouble: the pause does not
// grow with how many they are.
func TestFair_FailTogether(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	holder := locktest.ManagerOn(t, srv)
	m, p := locktest.ManagerVia(t, srv, locktest.Unasked...)
	l := m.FairMutex("a")
	held := locktest.MustLock(t, holder.FairMutex("a"))
	gate := p.HoldRequest(locktest.JoinOn("a"))
	got := []<-chan holdfast.Result{l.LockAsync(t.Context())}
	locktest.Queued(t, srv, "redisson_lock_queue:{a}", 1)
	got = append(got, l.LockAsync(t.Context()))
	gate.Wait(t)
	p.LoseRequest(locktest.JoinOn("a"), math.MaxInt)
	const n = 20
	for range n {
		got = append(got, l.LockAsync(t.Context()))
	}
	before := m.Stats().Troubles
	gate.Release()
	redistest.Eventually(t, locktest.Patience, "requests fail", func() bool {
		pause, failed := seam.Engine(m).NextPause(), (m.Stats().Troubles-before)/n
		if pause > 30*time.Millisecond<<failed {
			t.Fatalf("a pause of %v next, after %d requests", pause, failed)
		}
		return failed > 3
	})
	p.Heal()
	locktest.MustUnlock(t, held)
	for _, result := range got {
		locktest.MustUnlock(t, locktest.Granted(t, result))
	}
}

// Requests for places fail, and while they pause the first waiter is answered: that puts nothing off.
func TestFair_AnswerInAPause(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		holder := locktest.ManagerOn(t, srv)
		m, p := locktest.ManagerVia(t, srv, locktest.Unasked...)
		l := m.FairMutex("a")
		held := locktest.MustLock(t, holder.FairMutex("a"))
		got := []<-chan holdfast.Result{l.LockAsync(t.Context())}
		redistest.Eventually(t, locktest.Patience, "the first has asked again, since it hears", func() bool { return locktest.Hears(t, srv, m) })
		join := locktest.JoinOn("a")
		gate := p.HoldReply(locktest.ScriptOn("a", "lock_acquire"))
		p.LoseRequest(join, math.MaxInt)
		got = append(got, l.LockAsync(t.Context()))
		gate.Wait(t) // all ask when a pause is over, the first as well
		redistest.Eventually(t, locktest.Patience, "pauses grow", func() bool { return seam.Engine(m).NextPause() > 100*time.Millisecond })
		gate.Release()
		redistest.Eventually(t, locktest.Patience, "the first is answered", func() bool { return seam.Engine(m).NextPause() == 0 })
		p.Heal()
		locktest.Queued(t, srv, "redisson_lock_queue:{a}", 2)
		locktest.MustUnlock(t, held)
		for _, result := range got {
			locktest.MustUnlock(t, locktest.Granted(t, result))
		}
	})
}

// A handle recalls the entry that it has left, unless another handle has made one since: both would take the lock for
// callers of this process then, and send requests for each other's.
func TestRecall_FindsTheEntryOfAnotherHandle(t *testing.T) {
	t.Parallel()
	m := locktest.ManagerAsIs(t, redistest.Start(t).Client(t))
	first, second := m.Mutex("x"), m.Mutex("x")
	for range 3 { // the second time an entry is recalled
		locktest.MustUnlock(t, locktest.MustLock(t, first))
		locktest.MustUnlock(t, locktest.MustLock(t, second))
	}
	held := locktest.MustLock(t, second)
	before := m.Stats()
	if _, err := first.TryLock(t.Context()); !errors.Is(err, holdfast.ErrNotAcquired) {
		t.Errorf("TryLock while another handle holds it: %v", err)
	}
	if s := m.Stats(); s.Commands != before.Commands || s.Locks != 1 {
		t.Errorf("%d commands for a lock that this process holds; %d locks in use", s.Commands-before.Commands, s.Locks)
	}
	locktest.MustUnlock(t, held)
	redistest.Must(t, m.Close(context.Background()))
	if _, err := first.Lock(t.Context()); !errors.Is(err, holdfast.ErrClosed) {
		t.Errorf("Lock after Close: %v", err)
	}
}
