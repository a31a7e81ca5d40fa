package holdfast_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestRedlock_RefusesBadLocks(t *testing.T) {
	t.Parallel()
	all := servers(t, 3)
	c := all.candidate(t)
	a, b, d := c.managers[0], c.managers[1], c.managers[2]
	for name, locks := range map[string][]holdfast.Locker{
		"two":         {a.Mutex("x"), b.Mutex("x")},
		"one manager": {a.Mutex("x"), b.Mutex("x"), b.Mutex("y")},
		"nil":         {a.Mutex("x"), b.Mutex("x"), nil},
		"a multi":     {a.Mutex("x"), b.Mutex("x"), multi(t, d.Mutex("x"))},
	} {
		if _, err := holdfast.NewRedlock(locks...); !errors.Is(err, holdfast.ErrInvalidOption) {
			t.Errorf("%s: %v", name, err)
		}
	}
	bad, err := holdfast.NewRedlock(a.Mutex("x"), b.Mutex("x"), d.Mutex(""))
	if err != nil {
		t.Fatal(err)
	}
	_, err = bad.Lock(t.Context())
	wantErr(t, err, holdfast.ErrInvalidName, holdfast.ErrUnavailable)
	for i, srv := range all {
		srv.Admin().Set(t.Context(), "x", i, 0)
	}
	wrong, err := holdfast.NewRedlock(a.Mutex("x"), b.Mutex("x"), d.Mutex("x"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = wrong.Lock(t.Context())
	wantErr(t, err, holdfast.ErrWrongKind, holdfast.ErrUnavailable)
}

func TestRedlock_IsALock(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := servers(t, 3)
		c, other := all.candidate(t), all.candidate(t)
		before := time.Now()
		lease := mustLock(t, c)
		if d := lease.Deadline(); lease.Name() != vote || lease.Token() != 0 || !lease.Valid() || d.After(time.Now().Add(30*time.Second)) || d.Before(before.Add(29*time.Second)) {
			t.Errorf("lease %q, token %d, valid %v, deadline in %v", lease.Name(), lease.Token(), lease.Valid(), time.Until(d))
		}
		_, err := other.TryLock(t.Context())
		wantErr(t, err, holdfast.ErrNotAcquired, holdfast.ErrUnavailable)
		again, err := c.Lock(lease.Context(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		all.heldBy(t, 3)
		mustUnlock(t, lease)
		if !again.Valid() || lease.Valid() || lease.Err() != holdfast.ErrReleased || lease.Deadline().IsZero() {
			t.Errorf("after the first Unlock: %v %v %v", again.Valid(), lease.Err(), lease.Deadline())
		}
		wantErr(t, lease.Unlock(t.Context()), holdfast.ErrNotHeld, nil)
		_, err = other.TryLock(t.Context())
		wantErr(t, err, holdfast.ErrNotAcquired, nil)
		mustUnlock(t, again)
		all.heldBy(t, 0)

		n := 0
		sync := holdfast.SyncLocker(t.Context(), other)
		sync.Lock()
		n++
		sync.Unlock()
		if err := holdfast.Do(t.Context(), c, func(ctx context.Context, lease *holdfast.Lease) error {
			inner, err := c.TryLock(ctx)
			if err != nil {
				return err
			}
			n++
			return inner.Unlock(ctx)
		}); err != nil || n != 2 {
			t.Errorf("%v after %d sections", err, n)
		}
		all.heldBy(t, 0)
	})
}

// The votes of two members have been deleted, and the third one is silent: Unlock says both,
// and what is not confirmed must not hide what is lost.
func TestRedlock_LossBesideSilence(t *testing.T) {
	t.Parallel()
	for name, section := range map[string]func(l holdfast.Locker, work func()) error{
		"Do": func(l holdfast.Locker, work func()) error {
			return holdfast.Do(t.Context(), l, func(context.Context, *holdfast.Lease) error { work(); return nil })
		},
		"SyncLocker": func(l holdfast.Locker, work func()) (err error) {
			defer func() { err, _ = recover().(error) }()
			s := holdfast.SyncLocker(t.Context(), l)
			s.Lock()
			work()
			s.Unlock()
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := servers(t, 3)
			err := section(all.candidate(t), func() {
				all.heldBy(t, 3)
				for _, srv := range all[:2] {
					srv.Admin().Del(t.Context(), vote)
				}
				all[2].Pause()
				t.Cleanup(all[2].Resume)
			})
			wantErr(t, err, holdfast.ErrLeaseLost, nil)
		})
	}
}

// A minority that is lost, beside a member that is silent, is no loss.
func TestRedlock_LostMinorityBesideSilence(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := servers(t, 3)
		err := holdfast.Do(t.Context(), all.candidate(t), func(_ context.Context, lease *holdfast.Lease) error {
			all.joined(t, lease)
			all[0].Admin().Del(t.Context(), vote)
			all[1].Pause()
			t.Cleanup(all[1].Resume)
			err := lease.Extend(t.Context(), 2*time.Hour)
			if lease.Valid() {
				wantErr(t, err, holdfast.ErrUnavailable, holdfast.ErrLeaseLost)
			}
			return nil
		})
		if err != nil {
			t.Errorf("Do: %v", err)
		}
	})
}

// A waiter is woken by the release and asks nothing meanwhile.
func TestRedlock_IsWokenByTheRelease(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := servers(t, 3)
		c, waiter := all.candidate(t), all.candidate(t, holdfast.WithPollInterval(time.Hour), holdfast.WithFairPatience(time.Hour))
		lease := mustLock(t, c)
		all.heldBy(t, 3)
		got := waits(t, waiter)
		member := waiter.waitsAt(t)
		at := waiter.managers[member]
		redistest.Eventually(t, patience, "it only waits for messages", func() bool {
			places := all[member].Admin().ZRangeWithScores(t.Context(), "redisson_lock_timeout:{"+vote+"}", 0, -1).Val()
			return len(places) == 1 && places[0].Score == math.Trunc(places[0].Score) && at.Pending() == 0
		})
		polls := at.Stats().Polls // while it did not hear, it asked often
		mustUnlock(t, lease)
		next := got()
		s := at.Stats()
		if s.Granted+s.Wakeups == 0 || s.Polls != polls {
			t.Errorf("woken by %d grants, %d messages and %d polls", s.Granted, s.Wakeups, s.Polls)
		}
		mustUnlock(t, next)
		all.heldBy(t, 0)
	})
}

// A waiter does not stay where no release will come: the member is dead, or held by
// somebody who has no majority.
func TestRedlock_LeavesTheWrongPlace(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		stranger bool
		after    func(at *redistest.Server)
	}{
		"dead":               {after: (*redistest.Server).Kill},
		"silent":             {after: (*redistest.Server).Pause},
		"held by a stranger": {stranger: true, after: func(*redistest.Server) {}},
	} {
		t.Run(name, func(t *testing.T) {
			all := servers(t, 3)
			c, waiter, stranger := all.candidate(t), all.candidate(t, holdfast.WithPollInterval(time.Hour)), all.candidate(t)
			if tc.stranger {
				mustLock(t, stranger.managers[0].Mutex(vote))
			}
			lease := mustLock(t, c)
			got := waits(t, waiter)
			tc.after(all[waiter.waitsAt(t)])
			_ = lease.Unlock(t.Context()) // unconfirmed if the third member had not joined
			mustUnlock(t, got())
		})
	}
}

// Clients in tight loops all get on.
func TestRedlock_NoLivelock(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := servers(t, 3)
		var clients []holdfast.Locker
		for range 8 {
			clients = append(clients, all.candidate(t))
		}
		alone(t, 15, clients...)
		all.heldBy(t, 0)
	})
}

// Exclusion while members are killed, restarted with their data, and stopped, one at a
// time.
func TestRedlock_ExcludesThroughFaults(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := servers(t, 3, redistest.WithAOF())
		counter, granted := 0, 0 // unprotected
		var excused atomic.Int32
		var wg sync.WaitGroup
		done := make(chan struct{})
		for range 4 {
			c := all.candidate(t, holdfast.WithLease(3*time.Second))
			wg.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					lease := mustLock(t, c)
					if !lease.Valid() {
						excused.Add(1)
						_ = lease.Unlock(t.Context())
						continue
					}
					n := counter
					for range 20 {
						if k := rand.N(100); k < 0 {
							n += k
						}
					}
					granted++
					counter = n + 1
					if err := lease.Unlock(t.Context()); err != nil && !errors.Is(err, holdfast.ErrUnavailable) && !errors.Is(err, holdfast.ErrLeaseLost) {
						t.Errorf("Unlock: %v", err)
					}
				}
			})
		}
		faults := 0
		for end := time.Now().Add(4 * time.Second); time.Now().Before(end); faults++ {
			srv := all[faults%3]
			if faults%2 == 0 {
				srv.Kill()
				<-time.After(rand.N(200 * time.Millisecond)) // how long it is away
				srv.Restart()
			} else {
				srv.Pause()
				<-time.After(rand.N(300 * time.Millisecond))
				srv.Resume()
			}
		}
		close(done)
		wg.Wait()
		t.Logf("%d sections, %d faults, %d leases over when granted", counter, faults, excused.Load())
		if counter != granted || counter < 10 {
			t.Errorf("counted %d of %d", counter, granted)
		}
		all.heldBy(t, 0)
	})
}

func TestRedlock_CancelLeavesNothing(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := servers(t, 3)
		a, b := all.candidate(t), all.candidate(t)
		giveUp(t, a, b, b)
		all.heldBy(t, 0)
		a.idle(t)
		b.idle(t)
	})
}

// giveUp waits for each lock in a goroutine of its own and leaves at random moments.
func giveUp(t *testing.T, locks ...holdfast.Locker) {
	t.Helper()
	var wg sync.WaitGroup
	for _, l := range locks {
		wg.Go(func() {
			for range 60 {
				ctx, cancel := context.WithTimeout(t.Context(), rand.N(4*time.Millisecond))
				lease, err := l.Lock(ctx)
				cancel()
				switch {
				case err == nil:
					if err := lease.Unlock(t.Context()); err != nil {
						t.Errorf("Unlock: %v", err)
					}
				case !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
					t.Errorf("Lock: %v", err)
				}
			}
		})
	}
	wg.Wait()
}
