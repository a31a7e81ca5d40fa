package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// local returns what m knows of a lock; false: nothing.
func local(m *holdfast.Manager, name string) (found holdfast.LocalLock, ok bool) {
	for l := range m.Locks() {
		if l.Name == name {
			found, ok = l, true
		}
	}
	return found, ok
}

func TestLocks_OfEachKind(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv)
		for kind, lock := range map[holdfast.Kind]holdfast.Locker{
			holdfast.KindMutex: m.Mutex("mutex", holdfast.WithFencing()), holdfast.KindFair: m.FairMutex("fair"),
			holdfast.KindWrite: m.RWMutex("write"), holdfast.KindRead: m.RWMutex("read").RLocker(),
		} {
			name := string(kind)
			before := time.Now()
			lease := locktest.Got(t, lock.Lock, holdfast.WithLabel(t.Context(), "of "+name))
			got, ok := local(m, name)
			if got.Since.Before(before) || got.Since.After(time.Now()) {
				t.Errorf("%s: since %v, and Lock was called at %v", name, got.Since, before)
			}
			want := holdfast.LocalLock{
				Name: name, Kind: kind, State: holdfast.LocalHeld, Since: got.Since, Label: "of " + name,
				Deadline: lease.Deadline(), Leases: 1, WaitMode: "fast", Token: lease.Token(),
			}
			if !ok || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %+v\nwant %+v", name, got, want)
			}
			locktest.MustUnlock(t, lease)
			if got, ok := local(m, name); ok {
				t.Errorf("%s: after Unlock: %+v", name, got)
			}
		}
	})
}

// What waits is listed beside what is held, and by itself where another process holds the lock.
func TestLocks_OfWaiters(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, other := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv)
		first := locktest.MustLock(t, m.Mutex("a"))
		elsewhere := locktest.MustLock(t, other.Mutex("b"))
		ctx := func(label string) context.Context { return holdfast.WithLabel(t.Context(), label) }
		began := time.Now()
		second := m.Mutex("a").LockAsync(ctx("second"))
		last := other.Mutex("a").LockAsync(ctx("last"))
		b := m.Mutex("b").LockAsync(ctx("b's"))
		redistest.Eventually(t, locktest.Patience, "all wait", func() bool {
			return m.Stats().Waiting+other.Stats().Waiting == 3 && m.Stats().Subscriptions > 0 && other.Stats().Subscriptions > 0
		})

		a, _ := local(m, "a")
		if a.State != holdfast.LocalHeld || a.Label != "" || a.Leases != 1 ||
			a.Waiters != 1 || a.WaiterLabel != "second" || a.WaitingSince.Before(began) || a.WaitingSince.Before(a.Since) {
			t.Errorf("held, and waited for: %+v", a)
		}
		w, _ := local(m, "b")
		want := holdfast.LocalLock{
			Name: "b", Kind: holdfast.KindMutex, State: holdfast.LocalWaiting, Since: w.WaitingSince, Label: "b's",
			Waiters: 1, WaitingSince: w.WaitingSince, WaiterLabel: "b's",
		}
		if !reflect.DeepEqual(w, want) || w.Since.Before(began) {
			t.Errorf("waited for: %+v\nwant %+v", w, want)
		}

		locktest.MustUnlock(t, first) // to the next caller here, and then to the other process
		held := locktest.Granted(t, second)
		if a, _ := local(m, "a"); a.Label != "second" || a.WaitMode != "handoff" || a.Since.Before(began) || a.Waiters != 0 {
			t.Errorf("after a local hand-off: %+v", a)
		}
		locktest.MustUnlock(t, held)
		held = locktest.Granted(t, last)
		if a, _ := local(other, "a"); a.Label != "last" || a.WaitMode != "grant" && a.WaitMode != "wait" {
			t.Errorf("after a remote hand-off: %+v", a)
		}
		locktest.MustUnlock(t, held)
		locktest.MustUnlock(t, elsewhere)
		locktest.MustUnlock(t, locktest.Granted(t, b))
		redistest.Eventually(t, locktest.Patience, "nothing is left", func() bool {
			_, a := local(m, "a")
			_, b := local(m, "b")
			return !a && !b
		})
	})
}

func TestLocks_Reentry(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		m := locktest.ManagerOn(t, redistest.Start(t))
		outer := locktest.Got(t, m.Mutex("a").Lock, holdfast.WithLabel(t.Context(), "outer"))
		inner := locktest.Got(t, m.Mutex("a").Lock, outer.Context(t.Context()))
		if l, _ := local(m, "a"); l.Leases != 2 || l.WaitMode != "fast" || l.Label != "outer" {
			t.Errorf("%+v", l)
		}
		locktest.MustUnlock(t, outer)
		if l, _ := local(m, "a"); l.Leases != 1 || l.WaitMode != "reentry" || l.Label != "outer" {
			t.Errorf("after Unlock of the outer lease: %+v", l)
		}
		locktest.MustUnlock(t, inner)
	})
}

func TestLocks_SayWhenTheyWereRenewed(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		m := locktest.ManagerOn(t, redistest.Start(t), holdfast.WithLease(6*time.Second))
		began := time.Now()
		lease := locktest.MustLock(t, m.Mutex("a"))
		redistest.Eventually(t, locktest.Patience, "a renewal", func() bool { l, _ := local(m, "a"); return !l.Renewed.IsZero() })
		l, _ := local(m, "a")
		if l.Renewed.Before(began) || l.Renewed.Add(l.RoundTrip).After(time.Now()) || l.RoundTrip < 0 || l.RoundTrip > locktest.Patience {
			t.Errorf("renewed at %v in %v; it began at %v, now is %v", l.Renewed, l.RoundTrip, began, time.Now())
		}
		locktest.MustUnlock(t, lease)
	})
}

// A release that is not answered is listed.
func TestLocks_OfAReleaseWithoutAnswer(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		proxy := srv.Proxy(t)
		m := locktest.ManagerAsIs(t, proxy.Client(t))
		lease := locktest.MustLock(t, m.Mutex("a"))
		proxy.Freeze(true)
		began := time.Now()
		unlocked := redistest.Begin(func() error { return lease.Unlock(context.Background()) })
		redistest.Eventually(t, locktest.Patience, "it is being released", func() bool {
			l, _ := local(m, "a")
			return l.State == holdfast.LocalReleasing && !l.Since.Before(began)
		})
		w := m.Mutex("a").LockAsync(t.Context())
		if l, _ := local(m, "a"); l.State != holdfast.LocalWaiting || l.Since.Before(began) {
			t.Errorf("%+v", l)
		}
		proxy.Freeze(false)
		if err := <-unlocked; err != nil && !errors.Is(err, holdfast.ErrUnavailable) {
			t.Error(err)
		}
		locktest.MustUnlock(t, locktest.Granted(t, w))
	})
}

// A lock of several names of a mapper has the name of its caller.
func TestLocks_HaveTheNameAsGiven(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		m := locktest.ManagerOn(t, redistest.Start(t), holdfast.WithNameMapper(strings.ToLower))
		for _, name := range []string{"A", "a"} {
			lease := locktest.MustLock(t, m.Mutex(name))
			if _, ok := local(m, name); !ok {
				t.Errorf("%s is not listed", name)
			}
			locktest.MustUnlock(t, lease)
		}
	})
}

// The list is taken while locks are taken, waited for, lost and released. It is for the race detector, and for a loop that
// calls the library again.
func TestLocks_WhileTheyChurn(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m, other := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var churn sync.WaitGroup
	for i := range 16 {
		m := []*holdfast.Manager{m, other}[i%2]
		churn.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				name := fmt.Sprint("churn ", n%3)
				l := []holdfast.Locker{m.Mutex(name), m.RWMutex("rw " + name), m.RWMutex("rw " + name).RLocker(), m.FairMutex("fair " + name)}[n%4]
				lease, err := l.Lock(holdfast.WithLabel(ctx, name))
				if err != nil {
					continue
				}
				if n%16 == 0 {
					_, _ = m.ForceUnlock(ctx, lease.Name())
				}
				_ = lease.Unlock(context.Background())
			}
		})
	}
	seen, states := 0, map[holdfast.LocalState]bool{}
	both := func() bool { return states[holdfast.LocalHeld] && states[holdfast.LocalWaiting] } // a busy machine takes its time
	for end := time.Now().Add(locktest.Patience); (seen < 20_000 || !both()) && time.Now().Before(end); {
		for l := range m.Locks() {
			seen++
			states[l.State] = true
			if l.Name == "" || l.Kind == "" || l.Since.IsZero() || l.State == holdfast.LocalHeld && (l.Leases == 0 || l.WaitMode == "") {
				t.Fatalf("%+v", l)
			}
			if seen%100 == 0 {
				m.Contended(3)
				break
			}
		}
	}
	stop()
	churn.Wait()
	if !both() {
		t.Errorf("of %d, the states were %v", seen, states)
	}
}

func TestContended_CountsWhatWaited(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, other := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv)
		waits := func(name string, n int, holder *holdfast.Manager, opts ...holdfast.LockOption) {
			lease := locktest.MustLock(t, holder.Mutex(name, opts...))
			var waiters []<-chan holdfast.Result
			for range n {
				waiters = append(waiters, m.Mutex(name, opts...).LockAsync(t.Context()))
			}
			if _, err := m.Mutex(name, opts...).TryLock(t.Context()); !errors.Is(err, holdfast.ErrNotAcquired) { // does not wait
				t.Errorf("TryLock: %v", err)
			}
			locktest.MustUnlock(t, lease)
			for _, w := range waiters {
				locktest.MustUnlock(t, locktest.Granted(t, w))
			}
		}
		locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex("free")))
		waits("here", 3, m)
		waits("there", 2, other)
		waits("never passed on", 2, m, holdfast.WithFixedLease(time.Minute))
		short, cancel := context.WithCancel(t.Context())
		held := locktest.MustLock(t, other.Mutex("in vain"))
		gone := m.Mutex("in vain").LockAsync(short)
		locktest.Queued(t, srv, "redisson_lock_queue:{in vain}", 1)
		if _, err := m.Mutex("in vain").TryLock(t.Context()); !errors.Is(err, holdfast.ErrNotAcquired) { // so the process knows of the owner
			t.Errorf("TryLock: %v", err)
		}
		cancel()
		if r := <-gone; !errors.Is(r.Err, holdfast.ErrNotAcquired) {
			t.Fatal(r.Err)
		}
		locktest.MustUnlock(t, held)
		srv.Pause()
		silent, give := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer give()
		if _, err := m.Mutex("no owner").Lock(silent); !errors.Is(err, holdfast.ErrUnavailable) {
			t.Errorf("beside no owner: %v", err)
		}
		srv.Resume()

		var names []string
		for _, c := range m.Contended(10) {
			names = append(names, c.Name)
			if c.Waits <= 0 || c.Excess != 0 {
				t.Errorf("%+v", c)
			}
		}
		if strings.Join(names, ",") != "here,never passed on,there,in vain" {
			t.Errorf("%q", names)
		}
		if top := m.Contended(1); len(top) != 1 || top[0].Name != "here" || top[0].Waits != 3 && !straddles() {
			t.Errorf("%+v", top)
		}
		if got := other.Contended(10); len(got) != 0 {
			t.Errorf("nothing waited there: %+v", got)
		}
	})
}

// straddles reports whether a minute of the managers may have ended within the test, which halves counts.
func straddles() bool { return !testing.Short() }

func TestContended_FadesAway(t *testing.T) {
	if !testing.Short() {
		t.Skip("it takes minutes outside fake time")
	}
	redistest.InWorlds(t, func(t *testing.T) {
		m := locktest.ManagerOn(t, redistest.Start(t))
		lease := locktest.MustLock(t, m.Mutex("a"))
		next := m.Mutex("a").LockAsync(t.Context())
		locktest.MustUnlock(t, lease)
		locktest.MustUnlock(t, locktest.Granted(t, next))
		for _, want := range []float64{1, .5, .25} {
			if got := m.Contended(1); len(got) != 1 || got[0].Waits != want {
				t.Errorf("%+v, want %v", got, want)
			}
			time.Sleep(time.Minute)
		}
		time.Sleep(time.Hour)
		if got := m.Contended(1); len(got) != 0 {
			t.Errorf("%+v", got)
		}
	})
}
