package several

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// AC-75: what was taken before the refusal is released at once.
func TestMulti_RollsBack(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv, srv2 := redistest.Start(t), redistest.Start(t)
		m, m2, other := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv2), locktest.ManagerOn(t, srv)
		held := locktest.MustLock(t, other.Mutex("d"))
		l := Multi(t, m.Mutex("a"), m2.Mutex("b"), m.RWMutex("c"), m.Mutex("d"), m.Mutex("e"))
		if _, err := l.TryLock(t.Context()); !errors.Is(err, holdfast.ErrNotAcquired) {
			t.Fatalf("TryLock: %v", err)
		}
		redistest.Eventually(t, locktest.Patience, "rolled back", func() bool { return len(locktest.LastingKeys(srv)) == 1 && len(locktest.LastingKeys(srv2)) == 0 })

		ctx, cancel := context.WithCancel(t.Context())
		left := redistest.Begin(func() error { _, err := l.Lock(ctx); return err })
		redistest.Eventually(t, locktest.Patience, "it waits", func() bool { return m.Stats().Waiting == 1 && m.Stats().Subscriptions > 0 })
		cancel()
		if err := <-left; !errors.Is(err, holdfast.ErrNotAcquired) || !errors.Is(err, context.Canceled) {
			t.Fatalf("Lock: %v", err)
		}
		redistest.Eventually(t, locktest.Patience, "rolled back", func() bool { return len(locktest.LastingKeys(srv)) == 1 && len(locktest.LastingKeys(srv2)) == 0 })

		got := locktest.Waits(t, l)
		redistest.Eventually(t, locktest.Patience, "it waits", func() bool { return m.Stats().Waiting == 1 })
		locktest.MustUnlock(t, held)
		lease := got()
		locktest.MustUnlock(t, lease)
		srv.RequireNoKeys(t)
		srv2.RequireNoKeys(t)
	})
}

// AC-76: a member that does not answer is released as well, once it does.
func TestMulti_RollsBackTheSilent(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv, silent := redistest.Start(t), redistest.Start(t)
		m, m2 := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, silent)
		locktest.MustUnlock(t, locktest.MustLock(t, m2.Mutex("warm")))
		l := Multi(t, m.Mutex("a"), m2.Mutex("b"))
		silent.Pause()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, err := l.Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Lock: %v", err)
		}
		redistest.Eventually(t, locktest.Patience, "the first is released", func() bool { return len(locktest.LastingKeys(srv)) == 0 })
		silent.Resume()
		redistest.Eventually(t, locktest.Patience, "the silent one is released", func() bool { return silent.Admin().Exists(t.Context(), "b").Val() == 0 })
		silent.RequireTTLs(t)
	})
}

// AC-75, AC-76: what was granted, or may have been, is given back after a refusal.
func TestRedlock_RollsBack(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := Servers(t, 3)
		c, other := all.Candidate(t), all.Candidate(t)
		all.greet(t, c)
		held := locktest.MustLock(t, other.Managers[0].Mutex(Vote))
		all[2].Pause()
		_, err := c.TryLock(t.Context())
		locktest.WantErr(t, err, holdfast.ErrNotAcquired, nil)
		redistest.Eventually(t, locktest.Patience, "the second is released", func() bool { return len(all[1].Keys()) == 0 })
		all[2].Resume()
		redistest.Eventually(t, locktest.Patience, "the silent one is released", func() bool { return all[2].Admin().Exists(t.Context(), Vote).Val() == 0 })
		locktest.MustUnlock(t, held)
		all.heldBy(t, 0)
		for _, srv := range all {
			srv.RequireTTLs(t)
		}
	})
}

// A lock is free, and all who stand in its queue have died: they do not refuse it to a Multi,
// as they do not to a mutex.
func TestMulti_TryLockBehindTheDead(t *testing.T) {
	const ours, redissons = "hf-5c6a0a3c-0f5e-4a37-9f1f-0d8f9c6b1a11:1", "5c6a0a3c-0f5e-4a37-9f1f-0d8f9c6b1a11:1"
	for name, c := range map[string]struct {
		id     string
		until  time.Duration // from now; 0: no time at all
		atOnce bool
	}{
		"of ours, its time over":      {ours, -time.Second, true},
		"of ours":                     {ours, time.Hour, true},
		"of Redisson, its time over":  {redissons, -time.Second, true},
		"of Redisson":                 {redissons, time.Hour, false},
		"of Redisson, without a time": {redissons, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
				m, admin := locktest.ManagerOn(t, srv), srv.Admin()
				admin.RPush(t.Context(), "redisson_lock_queue:{b}", c.id)
				stays := "nobody" // in no queue
				if c.until != 0 {
					stays = c.id
				}
				admin.ZAdd(t.Context(), "redisson_lock_timeout:{b}", redis.Z{Score: float64(time.Now().Add(c.until).UnixMilli()), Member: stays})
				l := Multi(t, m.Mutex("a"), m.Mutex("b"))
				lease, err := l.TryLock(t.Context())
				if !c.atOnce {
					locktest.WantErr(t, err, holdfast.ErrNotAcquired, nil)
					redistest.Eventually(t, locktest.Patience, "its time is cut to a few seconds", func() bool {
						lease, err = l.TryLock(t.Context())
						return err == nil
					})
				}
				redistest.Must(t, err)
				locktest.MustUnlock(t, lease)
				admin.Del(t.Context(), "redisson_lock_timeout:{b}")                        // of no owner
				srv.RequireNoKeys(t, "holdfast_tombstones:{a}", "holdfast_tombstones:{b}") // of a TryLock that was answered late
			})
		})
	}
}

// A lock that does not wait is granted when the one before it has ended: that is no lease.
func TestMulti_TryLockOutlastsAPart(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, p := locktest.ManagerVia(t, srv)
		l := Multi(t, m.RWMutex("a"), m.RWMutex("b"))
		gate := p.HoldReply(locktest.ScriptOn("b"))
		tried := locktest.Calls(l.TryLock, context.Background())
		gate.Wait(t)
		redistest.Must(t, locktest.ErrOf(m.ForceUnlock(t.Context(), "a")))
		redistest.Eventually(t, locktest.Patience, "the first has ended", func() bool { return m.Stats().Lost == 1 })
		gate.Release()
		r := <-tried
		locktest.WantErr(t, r.Err, holdfast.ErrUnavailable, holdfast.ErrNotAcquired)
		if r.Lease != nil {
			t.Errorf("a lease, valid %v", r.Lease.Valid())
			_ = r.Lease.Unlock(t.Context())
		}
		redistest.Eventually(t, locktest.Patience, "none is held", func() bool { return srv.Admin().Exists(t.Context(), "a", "b").Val() == 0 })
	})
}

// With a context that has ended nothing is sent.
func TestMulti_EndedContextSendsNothing(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		l := Multi(t, m.Mutex("a"), m.Mutex("b"))
		for _, lock := range []func(context.Context) (*holdfast.Lease, error){l.Lock, l.TryLock} {
			_, err := lock(ctx)
			locktest.WantErr(t, err, holdfast.ErrNotAcquired, nil)
			locktest.WantErr(t, err, context.Canceled, nil)
		}
		redistest.Must(t, m.Close(t.Context()))
		redistest.Want(t, m.Stats().Commands, 0, "%d commands")
	})
}
