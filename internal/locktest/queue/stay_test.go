package queue

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/locktest/several"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Combinations that make no sense are refused before anything is sent.
func TestHoldAtLeast_Invalid(t *testing.T) {
	for name, opts := range map[string][]holdfast.LockOption{
		"zero":                         {holdfast.WithHoldAtLeast(0)},
		"negative":                     {holdfast.WithHoldAtLeast(-time.Second)},
		"longer than the maximum hold": {holdfast.WithMaxHold(time.Minute), holdfast.WithHoldAtLeast(time.Minute + 1)},
		"longer than a fixed lease":    {holdfast.WithHoldAtLeast(time.Minute), holdfast.WithFixedLease(time.Second)},
	} {
		m, err := holdfast.New(locktest.Offline(t))
		redistest.Must(t, err)
		if _, err := m.Mutex("a", opts...).Lock(t.Context()); !errors.Is(err, holdfast.ErrInvalidOption) {
			t.Errorf("%s: %v", name, err)
		}
		var all []holdfast.Option
		for _, o := range opts {
			all = append(all, o)
		}
		if _, err := holdfast.New(locktest.Offline(t), all...); !errors.Is(err, holdfast.ErrInvalidOption) {
			t.Errorf("%s: New: %v", name, err)
		}
		_ = m.Close(t.Context())
	}
}

// Each lock of a Multi stays taken after its Unlock, and none if it could not be taken altogether.
func TestHoldAtLeast_Multi(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, other := locktest.ManagerOn(t, srv, holdfast.WithHoldAtLeast(time.Hour)), locktest.ManagerOn(t, srv)
		whole := several.Multi(t, m.Mutex("a"), m.Mutex("b"), m.RWMutex("c"))
		held := locktest.MustLock(t, other.RWMutex("c"))
		if _, err := whole.TryLock(t.Context()); !errors.Is(err, holdfast.ErrNotAcquired) {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b"} {
			locktest.MustUnlock(t, locktest.MustLock(t, other.Mutex(name)))
		}
		locktest.MustUnlock(t, held)
		locktest.MustUnlock(t, locktest.MustLock(t, whole))
		for _, l := range []holdfast.Locker{other.Mutex("a"), other.Mutex("b"), other.RWMutex("c")} {
			if _, err := l.TryLock(t.Context()); !errors.Is(err, holdfast.ErrNotAcquired) {
				t.Error(err)
			}
		}
	})
}

// A majority of the members stays taken, and those of a caller that got no majority do not.
func TestHoldAtLeast_Redlock(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		servers := several.Servers(t, 3)
		l, other := servers.Candidate(t, holdfast.WithHoldAtLeast(time.Hour)), servers.Candidate(t)
		var others []holdfast.Locker
		for _, m := range other.Managers {
			others = append(others, several.Mutexes(m))
		}
		b, c := locktest.MustLock(t, others[1]), locktest.MustLock(t, others[2])
		if _, err := l.TryLock(t.Context()); !errors.Is(err, holdfast.ErrNotAcquired) {
			t.Fatal(err)
		}
		locktest.MustUnlock(t, locktest.MustLock(t, others[0])) // the vote was given back at once
		locktest.MustUnlock(t, b, c)
		locktest.MustUnlock(t, locktest.MustLock(t, l))
		if _, err := other.TryLock(t.Context()); !errors.Is(err, holdfast.ErrNotAcquired) {
			t.Error(err)
		}
		redistest.Eventually(t, locktest.Patience, "two of the three stay taken", func() bool {
			n := 0
			for _, srv := range servers {
				if srv.Admin().PTTL(t.Context(), several.Vote).Val() > time.Hour/2 {
					n++
				}
			}
			return n >= 2
		})
	})
}

// The end by WithMaxHold is no Unlock: that comes later, and leaves the lock taken for the rest.
func TestHoldAtLeast_MaxHold(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, other := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv)
		held := locktest.MustLock(t, m.Mutex("a", holdfast.WithLease(time.Second), holdfast.WithMaxHold(time.Second), holdfast.WithHoldAtLeast(time.Second)))
		<-held.Done()
		locktest.WantErr(t, held.Unlock(t.Context()), holdfast.ErrMaxHold, nil)
		locktest.MustUnlock(t, locktest.MustLock(t, other.Mutex("a")))
	})
}

// The first waiter is told that the lock stays taken for a shorter time than its TTL was. If it leaves, the next one is told that as well.
func TestHoldAtLeast_WhoWasToldLeaves(t *testing.T) {
	for kind, lock := range map[string]func(*holdfast.Manager, ...holdfast.LockOption) holdfast.Locker{
		"mutex": func(m *holdfast.Manager, o ...holdfast.LockOption) holdfast.Locker { return m.Mutex("a", o...) },
		"fair":  func(m *holdfast.Manager, o ...holdfast.LockOption) holdfast.Locker { return m.FairMutex("a", o...) },
		"rw":    func(m *holdfast.Manager, o ...holdfast.LockOption) holdfast.Locker { return m.RWMutex("a", o...) },
	} {
		t.Run(kind, func(t *testing.T) {
			redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
				manager := func() *holdfast.Manager {
					return locktest.ManagerOn(t, srv, holdfast.WithPollInterval(time.Hour), holdfast.WithFairPatience(3*time.Hour))
				}
				m := manager()
				const stays = time.Minute
				held := locktest.MustLock(t, lock(m, holdfast.WithLease(time.Hour), holdfast.WithHoldAtLeast(stays)))
				granted := time.Now()
				waits := func(ctx context.Context, n int) <-chan holdfast.Result {
					l, result := lock(manager()), make(chan holdfast.Result, 1)
					go func() {
						lease, err := l.Lock(ctx)
						result <- holdfast.Result{Lease: lease, Err: err}
					}()
					redistest.Eventually(t, locktest.Patience, "it stands in the queue", func() bool {
						info, err := m.Inspect(t.Context(), "a")
						return err == nil && info.Waiters == n
					})
					return result
				}
				ctx, leave := context.WithCancel(t.Context())
				first, second := waits(ctx, 1), waits(t.Context(), 2)
				locktest.MustUnlock(t, held)
				time.Sleep(stays / 2)
				leave()
				if r := <-first; !errors.Is(r.Err, context.Canceled) {
					t.Error(r.Err)
				}
				r := <-second
				if took := time.Since(granted); r.Err != nil || took < stays || took > stays+time.Second {
					t.Errorf("granted after %v: %v", took, r.Err)
				}
				locktest.MustUnlock(t, r.Lease)
			})
		})
	}
}

// Redisson's fair lock notifies the first waiter on a channel of its own. A caller that has joined the queue while a TryLock was refused is that waiter,
// and hears it.
func TestFair_WhoJoinsBesideATryLockHearsRedisson(t *testing.T) {
	redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
		ctx, admin := t.Context(), srv.Admin()
		l := locktest.ManagerOn(t, srv, holdfast.WithPollInterval(time.Hour), holdfast.WithFairPatience(3*time.Hour)).FairMutex("a")
		held, waited := locktest.MustLock(t, locktest.ManagerOn(t, srv).FairMutex("a")), make(chan *holdfast.Lease, 1)
		go func() { waited <- locktest.MustLock(t, l) }()
		redistest.Eventually(t, locktest.Patience, "it waits, and hears its inbox", func() bool {
			return admin.LLen(ctx, "redisson_lock_queue:{a}").Val() == 1 && len(admin.PubSubChannels(ctx, "holdfast_inbox:*").Val()) == 1
		})
		locktest.MustUnlock(t, held)
		locktest.MustUnlock(t, <-waited)
		admin.HSet(ctx, "a", "9f8e7d6c-0000-4000-8000-00000000000f:1", 1)
		admin.PExpire(ctx, "a", time.Hour)
		tried, granted := make(chan error, 1), make(chan *holdfast.Lease, 1)
		go func() {
			_, err := l.TryLock(ctx)
			tried <- err
		}()
		synctest.Wait() // its request is under way
		go func() {
			lease, err := l.Lock(context.WithoutCancel(ctx))
			redistest.Check(t, err)
			granted <- lease
		}()
		if err := <-tried; !errors.Is(err, holdfast.ErrNotAcquired) {
			t.Fatal(err)
		}
		channel, asked := "", time.Now()
		redistest.Eventually(t, locktest.Patience, "it stands in the queue, and hears its channel", func() bool {
			id, err := admin.LIndex(ctx, "redisson_lock_queue:{a}", 0).Result()
			channel = "redisson_lock__channel:{a}:" + id
			return err == nil && admin.PubSubNumSub(ctx, channel).Val()[channel] == 1
		})
		if took := time.Since(asked); took > time.Second { // not by a poll
			t.Errorf("it hears its channel after %v", took)
		}
		admin.Del(ctx, "a")
		admin.Publish(ctx, channel, "0")
		lease := <-granted
		redistest.WantMost(t, time.Since(asked), time.Second, "granted after %v")
		locktest.MustUnlock(t, lease)
	})
}
