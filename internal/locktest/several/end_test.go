package several

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// AC-83: one member is lost, the lease ends, the others are released.
func TestMulti_EndsWithTheFirstLost(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv, holdfast.WithLease(4*time.Second))
		lease := locktest.MustLock(t, Multi(t, m.Mutex("a"), m.Mutex("b"), m.RWMutex("c")))
		ctx := lease.Context(t.Context())
		srv.Admin().Del(t.Context(), "b")
		redistest.Next(t, ctx.Done(), "nobody was told")
		var lost *holdfast.LostError
		if !errors.As(context.Cause(ctx), &lost) || lost.Name != "b" || lease.Valid() {
			t.Errorf("cause %v, valid %v", context.Cause(ctx), lease.Valid())
		}
		locktest.WantErr(t, lease.Unlock(t.Context()), holdfast.ErrLeaseLost, nil)
		redistest.Eventually(t, locktest.Patience, "the others are released", func() bool { return len(locktest.LastingKeys(srv)) == 0 })
	})
}

func TestMulti_ExtendAndClose(t *testing.T) {
	redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv, holdfast.WithFixedLease(20*time.Second))
		lease := locktest.MustLock(t, Multi(t, m.Mutex("a"), m.Mutex("b")))
		if locktest.MustExtend(t, lease, time.Minute); time.Until(lease.Deadline()) < 40*time.Second {
			t.Errorf("deadline in %v", time.Until(lease.Deadline()))
		}
		redistest.Must(t, m.Close(t.Context()))
		<-lease.Done()
		locktest.WantErr(t, lease.Err(), holdfast.ErrClosed, nil)
		srv.RequireNoKeys(t)
	})
}

// A part is given back because another was lost, and its owner reads beside it: other readers
// may come in.
func TestMulti_EndLeavesTheReadSide(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, other := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv)
		rw := m.RWMutex("a")
		lease := locktest.MustLock(t, Multi(t, rw, m.Mutex("b")))
		read := locktest.Got(t, rw.RLock, lease.Context(t.Context()))
		redistest.Must(t, locktest.ErrOf(m.ForceUnlock(t.Context(), "b")))
		<-lease.Done()
		locktest.MustUnlock(t, locktest.MustLock(t, other.RWMutex("a").RLocker()))
		locktest.WantErr(t, lease.Unlock(t.Context()), holdfast.ErrLeaseLost, nil)
		locktest.MustUnlock(t, read)
	})
}

// A lease of several locks ends no later than one of them is free for others, also if it takes time to
// tell everybody.
func TestMulti_EndsBeforeAPartIsFree(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, m2 := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv)
		lease := locktest.MustLock(t, Multi(t, m.Mutex("a"), m2.Mutex("b")))
		inner, err := m.Mutex("a").Lock(lease.Context(t.Context())) // is told first
		redistest.Must(t, err)
		slow := slowEnd{t.Context(), make(chan struct{}), make(chan struct{}), make(chan struct{})}
		if inner.Context(slow).Err() != nil {
			t.Fatal("it has ended")
		}
		closed := redistest.Begin(func() error { return m.Close(context.Background()) })
		<-slow.called
		locktest.MustUnlock(t, locktest.MustLock(t, m2.Mutex("a")))
		redistest.Want(t, lease.Valid(), false, "valid, and another owner has had the lock")
		close(slow.thaw)
		redistest.Check(t, <-closed)
		_ = lease.Unlock(t.Context())
	})
}

// slowEnd is a context of the user that takes its time when a caller stops listening to it.
type slowEnd struct {
	context.Context
	done, called, thaw chan struct{}
}

func (s slowEnd) Done() <-chan struct{} { return s.done }

func (s slowEnd) AfterFunc(func()) (stop func() bool) {
	return func() bool {
		select {
		case <-s.called:
		default:
			close(s.called)
		}
		<-s.thaw
		return true
	}
}

// Members are lost one after the other, and each could be taken again before the next ends:
// the lease ends nevertheless when a holder may not have it any longer.
func TestRedlock_EndsWhatHasAnEnd(t *testing.T) {
	for name, end := range map[string]holdfast.Option{
		"WithMaxHold": holdfast.WithMaxHold(3 * time.Second), "WithFixedLease": holdfast.WithFixedLease(3 * time.Second),
	} {
		t.Run(name, redistest.Worlds(func(t *testing.T) {
			all := Servers(t, 3)
			c := all.Candidate(t, holdfast.WithLease(3*time.Second), end)
			lease := locktest.MustLock(t, c)
			all.heldBy(t, 3)
			for _, m := range c.Managers[:2] {
				time.Sleep(time.Second) // of the lease
				redistest.Must(t, locktest.ErrOf(m.ForceUnlock(t.Context(), Vote)))
			}
			select {
			case <-lease.Done():
			case <-time.After(locktest.Patience):
				t.Errorf("valid until %v from now", time.Until(lease.Deadline()))
			}
			_ = lease.Unlock(t.Context())
		}))
	}
}

func TestRedlock_LossOfTheMajorityEndsIt(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := Servers(t, 3)
		c := all.Candidate(t, holdfast.WithLease(4*time.Second))
		lease := locktest.MustLock(t, c)
		all.Joined(t, lease)
		ctx := lease.Context(t.Context())
		c.Managers[0].Close(t.Context())
		if !lease.Valid() {
			t.Fatalf("a closed minority ended it: %v", lease.Err())
		}
		all[1].Admin().Set(t.Context(), Vote, "something else", 0)
		redistest.Next(t, ctx.Done(), "nobody was told")
		locktest.WantErr(t, context.Cause(ctx), holdfast.ErrLeaseLost, holdfast.ErrClosed)
		redistest.Eventually(t, locktest.Patience, "the rest is released", func() bool { return len(all[2].Keys()) == 0 })
		locktest.WantErr(t, lease.Unlock(t.Context()), holdfast.ErrLeaseLost, nil)
		locktest.WantErr(t, lease.Extend(t.Context(), time.Minute), holdfast.ErrLeaseLost, nil)
	})
}

// AC-79: after a lapse nothing is taken again.
func TestRedlock_NothingIsTakenAfterALapse(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := Servers(t, 3)
		c, other := all.Candidate(t, holdfast.WithLease(3*time.Second)), all.Candidate(t)
		lease := locktest.MustLock(t, c)
		all.heldBy(t, 3)
		deadline := lease.Deadline()
		all[0].Pause()
		all[1].Pause()
		redistest.Next(t, lease.Done(), "nobody was told")
		// It falls with a member that is lost, but not to nothing.
		if lease.Valid() || lease.Deadline().Before(deadline.Add(-100*time.Millisecond)) {
			t.Errorf("valid %v, deadline moved back by %v", lease.Valid(), deadline.Sub(lease.Deadline()))
		}
		redistest.Eventually(t, locktest.Patience, "the third is released", func() bool { return len(all[2].Keys()) == 0 })
		all[0].Resume()
		all[1].Resume()
		next := locktest.MustLock(t, other)
		locktest.WantErr(t, lease.Unlock(t.Context()), holdfast.ErrLeaseLost, holdfast.ErrNotHeld)
		if !next.Valid() {
			t.Errorf("the next lease: %v", next.Err())
		}
		locktest.MustUnlock(t, next)
		for _, m := range c.Managers {
			redistest.Eventually(t, locktest.Patience, "nothing held", func() bool { return m.Stats().Held == 0 })
		}
		all.heldBy(t, 0)
	})
}

func TestRedlock_Close(t *testing.T) {
	redistest.InFakeTime(t, func(t *testing.T) {
		all := Servers(t, 3)
		c, other := all.Candidate(t), all.Candidate(t)
		lease := locktest.MustLock(t, c)
		waiting := redistest.Begin(func() error { _, err := other.Lock(t.Context()); return err })
		other.waitsAt(t)
		for i := range all {
			redistest.Check(t, other.Managers[i].Close(t.Context()))
			redistest.Check(t, c.Managers[i].Close(t.Context()))
		}
		locktest.WantErr(t, <-waiting, holdfast.ErrClosed, holdfast.ErrUnavailable)
		<-lease.Done()
		locktest.WantErr(t, lease.Err(), holdfast.ErrClosed, nil)
		locktest.WantErr(t, lease.Unlock(t.Context()), holdfast.ErrClosed, nil)
		_, err := c.TryLock(t.Context())
		locktest.WantErr(t, err, holdfast.ErrClosed, nil)
		all.heldBy(t, 0)
	})
}

// severalOf returns a lease of several locks, of one of two kinds, and the servers that they are on.
func severalOf(t *testing.T, kind string, opts ...holdfast.Option) (*holdfast.Lease, Electorate) {
	t.Helper()
	if kind == "multi" {
		all := Servers(t, 1)
		m := locktest.ManagerOn(t, all[0], opts...)
		return locktest.MustLock(t, Multi(t, m.Mutex("a"), m.Mutex("b"))), all
	}
	all := Servers(t, 3)
	lease := locktest.MustLock(t, all.Candidate(t, opts...))
	all.heldBy(t, 3)
	return lease, all
}

// givenBack are the lines of a release.
var givenBack = regexp.MustCompile(`lua\] "hdel" "\w+" "hf-[^"]+:\d+"`)

// A stuck holder has until the TTLs to notice that its time is over, as it has with a single lock: none of the
// locks is given back before, unless it calls Unlock.
func TestGroup_SetEndLeavesTheLocks(t *testing.T) {
	const ttl = 4 * time.Second
	for name, end := range map[string]holdfast.Option{"WithMaxHold": holdfast.WithMaxHold(ttl), "WithFixedLease": holdfast.WithFixedLease(ttl)} {
		for _, kind := range []string{"multi", "redlock"} {
			for _, unlocked := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/unlocked=%v", name, kind, unlocked), redistest.Worlds(func(t *testing.T) {
					begun := time.Now()
					lease, all := severalOf(t, kind, holdfast.WithLease(ttl), end)
					var monitors []*redistest.Monitor
					for _, srv := range all {
						monitors = append(monitors, srv.Monitor(t))
						for _, key := range srv.Keys() {
							if unlocked { // it is not their TTL that ends them
								srv.Admin().PExpire(t.Context(), key, time.Minute)
							}
						}
					}
					left := func(srv *redistest.Server) int64 { return srv.Admin().Exists(t.Context(), "a", "b", Vote).Val() }
					<-lease.Done()
					for _, srv := range all {
						if n := left(srv); n < int64(max(1, 2/len(all))) && time.Since(begun) < ttl {
							t.Errorf("%d locks are left %v after the first was taken", n, time.Since(begun))
						}
					}
					if unlocked {
						if err := lease.Unlock(t.Context()); err == nil {
							t.Error("Unlock knows of no end")
						}
					}
					for i, srv := range all {
						redistest.Eventually(t, locktest.Patience, "nothing is left", func() bool { return left(srv) == 0 })
						srv.Admin().Echo(t.Context(), "looked")
						monitors[i].Wait(t, `"echo" "looked"`, locktest.Patience)
						if unlocked && !givenBack.MatchString(strings.Join(monitors[i].Lines(), "\n")) {
							t.Error("no lock was given back")
						}
					}
				}))
			}
		}
	}
}

// W2: of one of them, by a caller here or elsewhere.
func TestMulti_Wanted(t *testing.T) {
	redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
		m, other := locktest.ManagerOn(t, srv, locktest.Unasked...), locktest.ManagerOn(t, srv, locktest.Unasked...)
		for _, by := range []*holdfast.Manager{m, other} {
			lease := locktest.MustLock(t, Multi(t, m.Mutex("a"), m.FairMutex("b")))
			select {
			case <-lease.Wanted():
				t.Error("no caller waits")
			case <-time.After(3 * time.Second):
			}
			waits := locktest.Waits(t, by.FairMutex("b"))
			select {
			case <-lease.Wanted():
			case <-time.After(1100 * time.Millisecond):
				t.Error("it is not wanted")
			}
			locktest.MustUnlock(t, lease)
			locktest.MustUnlock(t, waits())
		}
	})
}
