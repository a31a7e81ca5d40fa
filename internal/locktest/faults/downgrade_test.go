package faults

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// What Extend has added is there after a downgrade, in Redis as well, whether the lease is renewed or fixed.
func TestDowngrade_OfAnExtendedLease(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv)
		const first = 2 * time.Second
		for _, opts := range [][]holdfast.LockOption{nil, {holdfast.WithFixedLease(first)}} {
			write, read := bothSides(t, m.RWMutex("a", opts...))
			locktest.MustExtend(t, read, time.Hour)
			locktest.MustUnlock(t, write)
			claimsItsRight(t, srv, read, 59*time.Minute)
			select {
			case <-read.Done():
				t.Errorf("%v, %v before the deadline", read.Err(), time.Until(read.Deadline()))
			case <-time.After(2 * first):
			}
			locktest.MustUnlock(t, read)
		}
	})
}

// Extend that a downgrade overtakes, before Redis has it or before its answer is here,
// prolongs the read side.
func TestDowngrade_OvertakesExtend(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]func(*redistest.Proxy, redistest.Match) *redistest.Gate{
		"the request":            (*redistest.Proxy).HoldRequest,
		"what Extend is told of": (*redistest.Proxy).HoldReply,
	} {
		t.Run(name, func(t *testing.T) {
			redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
				m, p := locktest.ManagerVia(t, srv)
				write, read := bothSides(t, m.RWMutex("a", holdfast.WithFixedLease(5*time.Second)))
				gate := hold(p, locktest.ScriptOn("a", "renew"))
				extended := redistest.Begin(func() error { return read.Extend(t.Context(), time.Minute) })
				gate.Wait(t)
				locktest.MustUnlock(t, write)
				gate.Release()
				redistest.Check(t, <-extended)
				claimsItsRight(t, srv, read, 50*time.Second)
				locktest.MustUnlock(t, read)
			})
		})
	}
}

// claimsItsRight fails unless the only reader claims at least so much, and no more than
// its right in Redis allows.
func claimsItsRight(t *testing.T, srv *redistest.Server, read *holdfast.Lease, least time.Duration) {
	t.Helper()
	rights := srv.Admin().Keys(t.Context(), "*:rwlock_timeout:1").Val()
	if len(rights) != 1 {
		t.Fatalf("rights %q", rights)
	}
	right := srv.Admin().PTTL(t.Context(), rights[0]).Val()
	if claimed := time.Until(read.Deadline()); claimed > right || claimed < least {
		t.Errorf("claimed for %v, the right ends in %v", claimed, right)
	}
}

// conversion matches the request that turns the write side of a lock into the read side.
func conversion(cmd []string) bool {
	return locktest.ScriptOn("a", "rw_downgrade")(cmd)
}

// bothSides takes both sides of a lock for one owner.
func bothSides(t *testing.T, l *holdfast.RWMutex) (write, read *holdfast.Lease) {
	t.Helper()
	write = locktest.MustLock(t, l)
	read, err := l.RLock(write.Context(t.Context()))
	redistest.Must(t, err)
	return write, read
}

// What is left of a fixed lease is what the read side gets.
func TestDowngrade_OfAFixedLease(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv)
		write, read := bothSides(t, m.RWMutex("a", holdfast.WithFixedLease(time.Minute)))
		redistest.Must(t, srv.Admin().PExpire(t.Context(), "a", 30*time.Second).Err())
		end := read.Deadline()
		time.Sleep(100 * time.Millisecond) // of the lease, which the read side must not get again
		locktest.MustUnlock(t, write)
		redistest.WantMost(t, read.Deadline().Sub(end), 10*time.Millisecond, "it ends %v later")
		claimsItsRight(t, srv, read, 50*time.Second)
		locktest.MustUnlock(t, read)
	})
}

// It is not renewed as a reader either.
func TestDowngrade_OfAFixedLeaseThatEnds(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv)
		write, read := bothSides(t, m.RWMutex("a", holdfast.WithFixedLease(2*time.Second)))
		end := read.Deadline()
		locktest.MustUnlock(t, write)
		select {
		case <-read.Done():
		case <-time.After(locktest.Patience):
			t.Fatalf("it goes on, %v after its end", time.Since(end))
		}
		redistest.Want(t, m.Stats().Renewals, 0, "%d renewals")
		locktest.WantErr(t, read.Unlock(t.Context()), holdfast.ErrLeaseLost, nil)
	})
}

// The owner that has the lock when the downgrade comes is the reason why it is lost.
func TestDowngrade_OfALockThatIsGone(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, other := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv)
		for name, want := range map[string]holdfast.LostReason{"deleted": holdfast.LostDeleted, "stolen": holdfast.LostStolen} {
			write, read := bothSides(t, m.RWMutex(name))
			srv.Admin().Del(t.Context(), name)
			if want == holdfast.LostStolen {
				locktest.MustLock(t, other.RWMutex(name))
			}
			for _, l := range []*holdfast.Lease{write, read} {
				var lost *holdfast.LostError
				if err := l.Unlock(t.Context()); !errors.As(err, &lost) || lost.Reason != want {
					t.Errorf("%s: Unlock: %v", name, err)
				}
			}
		}
	})
}

// A reader of another process comes in with the downgrade, even if no other caller waits.
func TestDowngrade_LetsAnotherProcessIn(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, other := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv, append(locktest.Unasked, holdfast.WithLease(time.Hour))...)
		write, read := bothSides(t, m.RWMutex("a", holdfast.WithLease(time.Hour)))
		got := locktest.Waits(t, other.RWMutex("a").RLocker())
		locktest.Queued(t, srv, "holdfast_rw_queue:{a}", 1)
		redistest.Eventually(t, locktest.Patience, "it has asked again, once it heard messages", func() bool {
			return other.Stats().Commands >= 2 && locktest.Pending(other) == 0
		})
		locktest.MustUnlock(t, write)
		locktest.MustUnlock(t, got())
		locktest.MustUnlock(t, read)
	})
}

// The time of WithMaxHold goes on through a downgrade: it ends the read side, which Unlock gives back.
func TestDowngrade_KeepsMaxHold(t *testing.T) {
	redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
		const most = 3 * time.Second
		m := locktest.ManagerOn(t, srv, holdfast.WithLease(most/3), holdfast.WithMaxHold(most))
		write, read := bothSides(t, m.RWMutex("a"))
		locktest.MustUnlock(t, write)
		redistest.Next(t, read.Done(), "the read side has no end")
		locktest.WantErr(t, read.Err(), holdfast.ErrMaxHold, holdfast.ErrLeaseLost)
		locktest.WantErr(t, read.Unlock(t.Context()), holdfast.ErrMaxHold, nil)
		redistest.Eventually(t, locktest.Patience, "it is given back", func() bool { return srv.Admin().Exists(t.Context(), "a").Val() == 0 })
	})
}
