package topology

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// AC-89. Locks in many slots are renewed together and never with keys of two slots in
// one script.
func TestSlots_RenewalsStayInTheirs(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	m := clients(t, c, 1, holdfast.WithLease(3*time.Second))[0]
	var held []*holdfast.Lease
	const locks = 60
	for i := range locks {
		held = append(held, locktest.MustLock(t, m.Mutex(fmt.Sprint("renewed", i))))
	}
	before := m.Stats()
	redistest.Eventually(t, patience, "two renewals of each", func() bool { return m.Stats().Renewals > before.Renewals+2*locks })
	after := m.Stats()
	redistest.WantMost(t, after.RenewalFailures, 0, "%d renewals failed")
	commands, batches := after.Commands-before.Commands, after.Batches-before.Batches
	t.Logf("%d renewals in %d pipelines", commands, batches)
	locktest.MustUnlock(t, held...)
}

// AC-90. All keys of a lock are in one slot, whatever its name, or the name is refused
// before anything is sent.
func TestSlots_NamesOfAnyShape(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	m := clients(t, c, 1)[0]
	names := []string{"", "{}x", "a{b", "a}b", "}{", "x{}y{z}", "a{b}c", "{a}{b}", "a{{b}}", "ä{ö}", "a\x00b", "a b\r\n"}
	const alphabet = "{}ab:"
	for range 300 {
		var b strings.Builder
		for range 1 + rand.N(8) {
			b.WriteByte(alphabet[rand.N(len(alphabet))])
		}
		names = append(names, b.String())
	}
	refused := 0
	for _, n := range names {
		before := m.Stats().Commands
		l, err := m.Mutex(n, holdfast.WithFencing()).TryLock(within(t))
		switch {
		case errors.Is(err, holdfast.ErrInvalidName):
			refused++
			if m.Stats().Commands != before {
				t.Errorf("%q was sent", n)
			}
		case err != nil:
			t.Errorf("%q: %v", n, err)
		default:
			if _, err := m.Inspect(context.Background(), n); err != nil {
				t.Errorf("inspect %q: %v", n, err)
			}
			locktest.MustUnlock(t, l)
		}
	}
	if refused < 5 || refused > len(names)*9/10 {
		t.Errorf("%d of %d names refused", refused, len(names))
	}
}

// AC-89. A plain client on a node of a cluster, as it talks to a proxy: it is found out
// that keys of one script must share a slot.
func TestSlots_PlainClientOfANode(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	node := c.Owner("here")
	m := locktest.ManagerAsIs(t, node.Client(t), holdfast.WithLease(3*time.Second))
	var held []*holdfast.Lease
	for i := 0; len(held) < 5; i++ {
		if name := fmt.Sprint("plain", i); c.Owner(name) == node {
			held = append(held, locktest.MustLock(t, m.Mutex(name)))
		}
	}
	redistest.Eventually(t, patience, "two renewals of each", func() bool { return m.Stats().Renewals >= 10 })
	locktest.MustUnlock(t, held...)
}

// Locks of several slots taken together through a plain client of a node: those that the
// node has are taken, one by one; with one of another node all is refused, and nothing left.
func TestSlots_MultiOnAPlainClientOfANode(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	node := c.Owner("here")
	var here []string
	elsewhere := ""
	for i := 0; len(here) < 3 || elsewhere == ""; i++ {
		switch n := fmt.Sprint("multi", i); {
		case c.Owner(n) != node:
			elsewhere = n
		case len(here) < 3:
			here = append(here, n)
		}
	}
	m, other := manager(t, node.Client(t)), clients(t, c, 1)[0]
	nothingLeft := func() {
		t.Helper()
		redistest.Eventually(t, patience, "nothing is left", func() bool {
			for _, n := range append(here, elsewhere) {
				if c.Owner(n).Admin().Exists(within(t), n).Val() != 0 {
					return false
				}
			}
			return m.Stats().Locks == 0
		})
	}

	lease, err := multi(t, m, here...).TryLock(within(t))
	if err != nil {
		t.Fatalf("TryLock: %v", err)
	}
	for _, n := range here {
		if _, err := other.Mutex(n).TryLock(within(t)); !errors.Is(err, holdfast.ErrNotAcquired) {
			t.Errorf("%s: %v, want ErrNotAcquired", n, err)
		}
	}
	locktest.MustUnlock(t, lease)
	locktest.MustUnlock(t, locktest.MustLock(t, multi(t, m, here...)))
	nothingLeft()

	// The same where the first sweep is the one that finds out, and a member is busy.
	m = manager(t, node.Client(t))
	held := locktest.MustLock(t, other.Mutex(here[2]))
	_, err = multi(t, m, here...).TryLock(within(t))
	if !errors.Is(err, holdfast.ErrNotAcquired) || errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("TryLock with a busy member: %v, want ErrNotAcquired", err)
	}
	locktest.MustUnlock(t, held)
	nothingLeft()

	for _, with := range [][]string{{here[0], elsewhere, here[1]}, {elsewhere, here[0]}} {
		m = manager(t, node.Client(t))
		l := multi(t, m, with...)
		_, err = l.TryLock(within(t))
		if !errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrNotAcquired) || !strings.Contains(err.Error(), "MOVED") {
			t.Errorf("TryLock with a lock of another node: %v, want ErrUnavailable and MOVED", err)
		}
		nothingLeft()
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		_, err = l.Lock(ctx)
		cancel()
		if !errors.Is(err, holdfast.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Lock with a lock of another node: %v, want ErrUnavailable and DeadlineExceeded", err)
		}
		nothingLeft()
	}
}

// multi is a Multi of mutexes.
func multi(t *testing.T, m *holdfast.Manager, names ...string) *holdfast.Multi {
	t.Helper()
	var locks []holdfast.Locker
	for _, n := range names {
		locks = append(locks, m.Mutex(n))
	}
	l, err := holdfast.NewMulti(locks...)
	redistest.Must(t, err)
	return l
}

// In a cluster a Multi costs one command for each slot, and is all or nothing over slots
// and masters, also while one of them moves.
func TestSlots_MultiInCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	ms := clients(t, c, 2)
	m, other := ms[0], ms[1]
	inOne := []string{"{" + name + "}a", "{" + name + "}b", "{" + name + "}c"}
	before := m.Stats().Commands
	locktest.MustUnlock(t, locktest.MustLock(t, multi(t, m, inOne...)))
	if n := m.Stats().Commands - before; n != 1+3 && m.Stats().Troubles == 0 { // a request that took too long is repeated
		t.Errorf("%d commands to take and release three names of one slot", n)
	}
	far := otherShard(c, name)
	over := append([]string{far}, inOne...)
	held := locktest.MustLock(t, other.Mutex(over[3]))
	if _, err := multi(t, m, over...).TryLock(within(t)); !errors.Is(err, holdfast.ErrNotAcquired) {
		t.Errorf("TryLock: %v, want ErrNotAcquired", err)
	}
	redistest.Eventually(t, patience, "rolled back", func() bool {
		return c.Owner(far).Admin().Exists(within(t), far).Val()+c.Owner(name).Admin().Exists(within(t), over[1:3]...).Val() == 0
	})
	got := locktest.Waits(t, multi(t, m, over...))
	redistest.Eventually(t, patience, "it waits", func() bool { return m.Stats().Waiting == 1 && m.Stats().Subscriptions > 0 })
	c.Migrate(name, c.OtherMaster(name))
	locktest.MustUnlock(t, held)
	lease := got()
	for _, n := range over {
		if _, err := other.Mutex(n).TryLock(within(t)); !errors.Is(err, holdfast.ErrNotAcquired) {
			t.Errorf("%s: %v, want ErrNotAcquired", n, err)
		}
	}
	locktest.MustUnlock(t, lease)
}

// AC-86. The lock's slot moves again and again while it is in use.
func TestReshard_UnderLoad(t *testing.T) {
	underLoad(t, clusterReshard, true, 150, func(c *redistest.Cluster, _ int) { c.Migrate(name, c.OtherMaster(name)) })
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

	got := locktest.Waits(t, ms[1].Mutex(name))
	redistest.Eventually(t, patience, "the waiter is refused", func() bool { return ms[1].Stats().Troubles > 1 })
	if err := held.Unlock(context.Background()); err != nil && !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("Unlock half-way: %v", err)
	}
	moving.Finish()
	finished := time.Now()
	next := got()
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
	troubles := m.Stats().Troubles
	got := locktest.Waits(t, m.Mutex(name))
	redistest.Eventually(t, patience, "Lock is refused", func() bool { return m.Stats().Troubles > troubles+2 })
	redistest.Must(t, owner.Admin().ClusterAddSlots(context.Background(), slot).Err())
	locktest.MustUnlock(t, got())
}
