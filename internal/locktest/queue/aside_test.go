package queue

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// duo is two processes that give one lock, a, to each other and find out nothing by
// themselves. The first has a reason to hear its inbox all the time: it waits for another
// lock as well.
type duo struct {
	*testing.T
	srv  *redistest.Server
	a, b *holdfast.Manager
}

const endless = time.Hour // longer than any test takes

func newDuo(t *testing.T, aside time.Duration) *duo {
	t.Helper()
	srv := redistest.Start(t)
	slow := []holdfast.Option{holdfast.WithPollInterval(endless), holdfast.WithFairPatience(endless), holdfast.WithLease(endless)}
	p := &duo{t, srv, locktest.ManagerOn(t, srv, append(slow, locktest.StepAside(aside))...), locktest.ManagerOn(t, srv, slow...)}
	locktest.MustLock(t, p.b.Mutex("other"))
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	p.a.Mutex("other").LockAsync(ctx)
	locktest.InboxHeard(t, srv)
	return p
}

// asks makes m wait for the lock, and returns when it stands in the queue.
func (p *duo) asks(m *holdfast.Manager) func() *holdfast.Lease {
	p.Helper()
	got := locktest.Waits(p.T, m.Mutex("a"))
	locktest.Queued(p.T, p.srv, "redisson_lock_queue:{a}", 1)
	return got
}

// away lets the lock be with the second process for so long that the next caller which comes back to the
// first steps aside, and returns the first one's lease.
func (p *duo) away() *holdfast.Lease {
	p.Helper()
	lease := locktest.MustLock(p.T, p.a.Mutex("a"))
	other := p.asks(p.b)
	locktest.MustUnlock(p.T, lease)
	held := other()
	back := p.asks(p.a)      // at once: for how long it stays away is not known
	time.Sleep(lock.AwayFor) // work under the lock
	locktest.MustUnlock(p.T, held)
	return back()
}

// Who comes back at once for a lock that has stayed away for a while leaves the next owner
// the time to be told of it, and asks then.
func TestAside_WhoComesBackAtOnce(t *testing.T) {
	for name, aside := range map[string]time.Duration{"the time is over": 10 * time.Millisecond, "somebody asks once": endless} {
		t.Run(name, func(t *testing.T) {
			p := newDuo(t, aside)
			lease := p.away()
			other := p.asks(p.b)
			locktest.MustUnlock(t, lease)
			held := other()
			got := locktest.Waits(t, p.a.Mutex("a"))
			redistest.Eventually(t, locktest.Patience, "it waits", func() bool { return p.a.Stats().Waiting == 2 })
			if aside != endless {
				locktest.Queued(t, p.srv, "redisson_lock_queue:{a}", 1)
				locktest.MustUnlock(t, held)
				locktest.MustUnlock(t, got())
				return
			}
			locktest.MustUnlock(t, held)
			redistest.Want(t, p.srv.Admin().Exists(t.Context(), "a").Val(), 0, "it stood in the queue, and was granted the lock")
			_, err := p.a.Mutex("a").TryLock(t.Context())
			locktest.WantErr(t, err, holdfast.ErrNotAcquired, nil) // the lock goes to who came before
			locktest.MustUnlock(t, got())
		})
	}
}

// The process remembers for as long as a caller would step aside, and no longer.
func TestAside_IsForgotten(t *testing.T) {
	p := newDuo(t, 50*time.Millisecond)
	lease := p.away()
	other := p.asks(p.b)
	locktest.MustUnlock(t, lease)
	held := other()
	redistest.Eventually(t, locktest.Patience, "only the other lock is known", func() bool { return p.a.Stats().Locks == 1 })
	back := p.asks(p.a)
	locktest.MustUnlock(t, held)
	locktest.MustUnlock(t, back())
}

// A process that is closed while one of its callers steps aside is gone.
func TestAside_Close(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		p := newDuo(t, endless)
		lease := p.away()
		other := p.asks(p.b)
		locktest.MustUnlock(t, lease)
		held := other()
		got := p.a.Mutex("a").LockAsync(t.Context())
		redistest.Must(t, p.a.Close(t.Context()))
		locktest.WantErr(t, (<-got).Err, holdfast.ErrClosed, nil)
		locktest.MustUnlock(t, held)
		redistest.Want(t, p.srv.Admin().Exists(t.Context(), "a", "redisson_lock_queue:{a}").Val(), 0, "something is left")
	})
}

// Processes that want the lock all the time, and step aside for each other, meet no other
// inside and all get on.
func TestAside_Alone(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		var locks []holdfast.Locker
		for range 12 { // a round of all takes longer than AwayFor
			locks = append(locks, locktest.ManagerOn(t, srv).Mutex("a"))
		}
		locktest.Alone(t, 50, locks...)
	})
}
