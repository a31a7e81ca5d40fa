package several

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A lock whose time is over while the next is waited for is taken again: the lease that
// Lock returns is of locks that are all held.
func TestMulti_BeginsAgain(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, other := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv)
		for name, end := range map[string]struct {
			opts []holdfast.LockOption
			now  func()
		}{
			"fixed":    {opts: []holdfast.LockOption{holdfast.WithFixedLease(2 * time.Second)}},
			"max hold": {opts: []holdfast.LockOption{holdfast.WithLease(2 * time.Second), holdfast.WithMaxHold(2 * time.Second)}},
			"deleted":  {opts: []holdfast.LockOption{holdfast.WithLease(3 * time.Second)}, now: func() { srv.Admin().Del(t.Context(), "a") }},
		} {
			held := locktest.MustLock(t, other.Mutex("b"))
			got := locktest.Waits(t, Multi(t, m.Mutex("a", end.opts...), m.Mutex("b")))
			lost := m.Stats().Lost
			redistest.Eventually(t, locktest.Patience, name+": it waits", func() bool { return m.Stats().Waiting == 1 && m.Stats().Held == 1 })
			if end.now != nil {
				end.now()
			}
			redistest.Eventually(t, locktest.Patience, name+": it is lost and taken again", func() bool {
				return m.Stats().Lost > lost && srv.Admin().Exists(t.Context(), "a").Val() == 1
			})
			locktest.MustUnlock(t, held)
			lease := got()
			if !lease.Valid() || srv.Admin().Exists(t.Context(), "a", "b").Val() != 2 {
				t.Errorf("%s: valid %v, keys %v", name, lease.Valid(), srv.Keys())
			}
			_ = lease.Unlock(t.Context()) // its time may be over
			redistest.Eventually(t, locktest.Patience, name+": released", func() bool { return len(locktest.LastingKeys(srv)) == 0 })
		}
	})
}

// AC-78: however often it has to begin again, each lock has its own lease.
func TestMulti_RetriesKeepTheLease(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, other := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv)
		leases := map[string]time.Duration{"a": 20 * time.Second, "b": 40 * time.Second}
		held := locktest.MustLock(t, other.Mutex("b"))
		// A read-write lock is taken by itself: a renewal tells of its end.
		got := locktest.Waits(t, Multi(t, m.RWMutex("a", holdfast.WithFixedLease(leases["a"])), m.Mutex("b", holdfast.WithLease(leases["b"]))))
		locktest.Queued(t, srv, "redisson_lock_queue:{b}", 1) // before, it asked for both without waiting, and gave the first back
		for range 3 {
			redistest.Eventually(t, locktest.Patience, "it has the first", func() bool { return m.Stats().Held == 1 && srv.Admin().Exists(t.Context(), "a").Val() == 1 })
			if ok, err := m.ForceUnlock(t.Context(), "a"); !ok || err != nil {
				t.Fatalf("ForceUnlock: %v, %v", ok, err)
			}
		}
		redistest.Eventually(t, locktest.Patience, "it has the first", func() bool { return m.Stats().Held == 1 && srv.Admin().Exists(t.Context(), "a").Val() == 1 })
		locktest.MustUnlock(t, held)
		lease := got()
		for name, ttl := range leases {
			redistest.Eventually(t, locktest.Patience, fmt.Sprintf("the TTL of %s is %v, also after a grant by message", name, ttl), func() bool {
				is := srv.Admin().PTTL(t.Context(), name).Val()
				return is <= ttl && is > ttl-10*time.Second
			})
		}
		redistest.WantMost(t, time.Until(lease.Deadline()), leases["a"], "deadline in %v")
		locktest.MustUnlock(t, lease)
		srv.RequireNoKeys(t)
	})
}

// A waiter is woken by the release and asks nothing meanwhile.
func TestRedlock_IsWokenByTheRelease(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := Servers(t, 3)
		c, waiter := all.Candidate(t), all.Candidate(t, holdfast.WithPollInterval(time.Hour), holdfast.WithFairPatience(time.Hour))
		lease := locktest.MustLock(t, c)
		all.heldBy(t, 3)
		got := locktest.Waits(t, waiter)
		member := waiter.waitsAt(t)
		at := waiter.Managers[member]
		redistest.Eventually(t, locktest.Patience, "it only waits for messages", func() bool {
			places := all[member].Admin().ZRangeWithScores(t.Context(), "redisson_lock_timeout:{"+Vote+"}", 0, -1).Val()
			return len(places) == 1 && places[0].Score == math.Trunc(places[0].Score) && locktest.Pending(at) == 0
		})
		polls := at.Stats().Polls // while it did not hear, it asked often
		locktest.MustUnlock(t, lease)
		next := got()
		s := at.Stats()
		if s.Granted+s.Wakeups == 0 || s.Polls != polls {
			t.Errorf("woken by %d grants, %d messages and %d polls", s.Granted, s.Wakeups, s.Polls)
		}
		locktest.MustUnlock(t, next)
		all.heldBy(t, 0)
	})
}

// A waiter does not stay where no release will come: the member is dead, or held by
// an owner that has no majority.
func TestRedlock_LeavesTheWrongPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		stranger bool
		after    func(at *redistest.Server)
	}{
		"dead":               {after: (*redistest.Server).Kill},
		"silent":             {after: (*redistest.Server).Pause},
		"held by a stranger": {stranger: true, after: func(*redistest.Server) {}},
	} {
		t.Run(name, redistest.Worlds(func(t *testing.T) {
			all := Servers(t, 3)
			c, waiter, stranger := all.Candidate(t), all.Candidate(t, holdfast.WithPollInterval(time.Hour)), all.Candidate(t)
			if tc.stranger {
				locktest.MustLock(t, stranger.Managers[0].Mutex(Vote))
			}
			lease := locktest.MustLock(t, c)
			got := locktest.Waits(t, waiter)
			tc.after(all[waiter.waitsAt(t)])
			_ = lease.Unlock(t.Context()) // unconfirmed if the third member had not joined
			locktest.MustUnlock(t, got())
		}))
	}
}

// A reader that waits at a member with a writer of no majority is not kept there while
// readers have the others: they would share.
func TestRedlock_ReaderLeavesTheWrongPlace(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := Servers(t, 3)
		// The first is to answer first: it is the place to wait then.
		others, clients := []*redistest.Proxy{all[1].Proxy(t), all[2].Proxy(t)}, []*redis.Client{all[0].Client(t)}
		for _, p := range others {
			p.Delay(50*time.Millisecond, 0)
			clients = append(clients, p.Client(t))
		}
		reader := CandidateOn(t, clients, readSide, holdfast.WithPollInterval(time.Hour))
		writer, stranger, readers := all.CandidateFor(t, writeSide), all.CandidateFor(t, writeSide), all.CandidateFor(t, readSide)
		locktest.MustLock(t, stranger.Managers[0].RWMutex(Vote))
		held := locktest.MustLock(t, writer)
		got := locktest.Waits(t, reader)
		if at := reader.waitsAt(t); at != 0 {
			t.Fatalf("it waits at %d", at)
		}
		for _, p := range others {
			p.Heal()
		}
		locktest.MustUnlock(t, held)
		share := locktest.MustLock(t, readers) // of the other two
		locktest.MustUnlock(t, got())
		locktest.MustUnlock(t, share)
	})
}

// A waiter has been granted the member in whose queue it stood, and too few others answer: it
// asks that member again with the others.
func TestRedlock_AsksWhereItHasWaitedAgain(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := Servers(t, 3)
		c, other := all.Candidate(t), all.Candidate(t)
		all.greet(t, c)
		held := locktest.MustLock(t, other.Managers[0].Mutex(Vote))
		all[1].Pause()
		all[2].Pause()
		got := locktest.Waits(t, c)
		redistest.Eventually(t, locktest.Patience, "it waits at the first", func() bool {
			return all[0].Admin().LLen(t.Context(), "redisson_lock_queue:{"+Vote+"}").Val() == 1
		})
		locktest.MustUnlock(t, held)
		redistest.Eventually(t, locktest.Patience, "it is in vain", func() bool {
			return all[0].Admin().Exists(t.Context(), Vote, "redisson_lock_queue:{"+Vote+"}").Val() == 0
		})
		all[1].Resume()
		locktest.MustUnlock(t, got())
		all[2].Resume()
		all.heldBy(t, 0)
	})
}

// A lease that was waited for ends by itself before its caller looks at it: what Lock has last said of it is known where it
// ends. The race detector watches.
func TestRedlock_EndsUnseen(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := Servers(t, 3)
		c, other := all.Candidate(t, holdfast.WithFixedLease(time.Second)), all.Candidate(t)
		held := locktest.MustLock(t, other)
		got := locktest.Calls(c.Lock, t.Context())
		redistest.Eventually(t, locktest.Patience, "it waits", func() bool {
			return c.Managers[0].Stats().Waiting+c.Managers[1].Stats().Waiting+c.Managers[2].Stats().Waiting == 1
		})
		locktest.MustUnlock(t, held)
		<-time.After(2 * time.Second) // its time is over; to look at a manager or a server would order the end after Lock
		r := <-got
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		<-r.Lease.Done()
	})
}

// WithWait bounds the wait, and neither ctx nor the work.
func TestWithWait_BoundsTheWaitAlone(t *testing.T) {
	redistest.InFakeTime(t, func(t *testing.T) {
		const wait, longer = 300 * time.Millisecond, holdfast.DefaultLease
		srv, all := redistest.Start(t), Servers(t, 3)
		m, other := locktest.ManagerOn(t, srv, holdfast.WithWait(wait)), locktest.ManagerOn(t, srv)
		for name, l := range map[string]struct{ lock, holder holdfast.Locker }{
			"mutex": {m.Mutex("mutex"), other.Mutex("mutex")},
			"fair":  {m.FairMutex("fair"), other.FairMutex("fair")},
			"read":  {m.RWMutex("read").RLocker(), other.RWMutex("read")},
			"write": {m.RWMutex("write"), other.RWMutex("write").RLocker()},
			// The smallest counts.
			"multi":   {Multi(t, m.Mutex("a", holdfast.WithWait(longer)), m.Mutex("b"), other.Mutex("c")), other.Mutex("c")},
			"redlock": {all.Candidate(t, holdfast.WithWait(wait)), all.Candidate(t)},
			// A lock has another bound than its Manager.
			"of its own": {other.Mutex("own", holdfast.WithWait(wait)), other.Mutex("own")},
		} {
			held := locktest.MustLock(t, l.holder)
			begun := time.Now()
			_, err := l.lock.Lock(t.Context())
			locktest.WantErr(t, err, holdfast.ErrNotAcquired, holdfast.ErrUnavailable)
			if d := time.Since(begun); d < wait || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "WithWait") {
				t.Errorf("%s: after %v: %v", name, d, err)
			}
			if a, ok := l.lock.(interface {
				LockAsync(context.Context) <-chan holdfast.Result
			}); ok {
				locktest.WantErr(t, (<-a.LockAsync(t.Context())).Err, holdfast.ErrNotAcquired, holdfast.ErrUnavailable)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err = l.lock.Lock(ctx); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "WithWait") {
				t.Errorf("%s: under a context that has ended: %v", name, err)
			}
			locktest.MustUnlock(t, held)
			err = holdfast.Do(t.Context(), l.lock, func(ctx context.Context, lease *holdfast.Lease) error {
				if at, ok := ctx.Deadline(); ok {
					t.Errorf("%s: the work has until %v", name, at)
				}
				select {
				case <-ctx.Done():
				case <-time.After(2 * wait):
				}
				return ctx.Err()
			})
			if err != nil {
				t.Errorf("%s: Do: %v", name, err)
			}
		}
	})
}
