package topology

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// AC-86. The lock's slot moves again and again while it is in use.
func TestReshard_UnderLoad(t *testing.T) {
	scenario(t, clusterReshard, true, func(t *testing.T, r *row) {
		c := redistest.StartCluster(t)
		ms := clients(t, c, 3, r.options()...)
		l := startLoad(name, ms, 4)
		l.goesOn(t, 1)
		for range r.rounds() {
			r.faults++
			held := locktest.MustLock(t, ms[0].Mutex(beside))
			c.Migrate(name, c.OtherMaster(name))
			r.judge(t, held, ms[1].Mutex(beside))
			l.goesOn(t, 50)
		}
		l.finish(t, r)
		everyClientCanLock(t, ms)
		wantFree(t, c)
	})
}

// While a slot moves, Redis answers TRYAGAIN to scripts with keys on either side.
// Callers wait, leases live on, and a release goes through in the end.
func TestReshard_HalfWay(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	ms := clients(t, c, 2)
	held := locktest.MustLock(t, ms[0].Mutex(name))
	to := c.OtherMaster(name)
	moving := c.StartMigration(name, to)
	moving.MoveKeys() // the new owner has never seen our scripts
	renewals := ms[0].Stats().Renewals
	redistest.Eventually(t, patience, "a renewal at the new owner", func() bool { return ms[0].Stats().Renewals > renewals })

	got := make(chan *holdfast.Lease, 1)
	go func() { got <- locktest.MustLock(t, ms[1].Mutex(name)) }()
	redistest.Eventually(t, patience, "the waiter is refused", func() bool { return ms[1].Stats().Troubles > 1 })
	if err := held.Unlock(context.Background()); err != nil && !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("Unlock half-way: %v", err)
	}
	moving.Finish()
	finished := time.Now()
	next := <-got
	t.Logf("granted %v after the end of the migration", time.Since(finished))
	if d := time.Since(finished); d > lease/2 { // what is not released lasts for two thirds of the lease
		t.Errorf("granted %v after the end of the migration", d)
	}
	redistest.Check(t, next.Err())
	locktest.MustUnlock(t, next)
	everyClientCanLock(t, ms)
}

// A slot without a master: CLUSTERDOWN, until it has one.
func TestReshard_UnservedSlot(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	m := clients(t, c, 1)[0]
	locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex(name)))
	owner, slot := c.Owner(name), c.Slot(name)
	redistest.Must(t, owner.Admin().ClusterDelSlots(context.Background(), slot).Err())
	if _, err := m.Mutex(name).TryLock(within(t)); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("TryLock: %v, want ErrUnavailable", err)
	}
	got := make(chan *holdfast.Lease, 1)
	troubles := m.Stats().Troubles
	go func() { got <- locktest.MustLock(t, m.Mutex(name)) }()
	redistest.Eventually(t, patience, "Lock is refused", func() bool { return m.Stats().Troubles > troubles+2 })
	redistest.Must(t, owner.Admin().ClusterAddSlots(context.Background(), slot).Err())
	locktest.MustUnlock(t, <-got)
}
