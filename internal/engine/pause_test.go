package engine_test

import (
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
		r := <-result
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		locktest.MustUnlock(t, r.Lease)
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
			r := <-result
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			locktest.MustUnlock(t, r.Lease)
		}
	})
}
