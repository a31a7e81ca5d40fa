package several

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// The one command for all, when its reply or the command itself is lost, comes late, or
// Redis has forgotten the script: in the end all are held, or none.
func TestMulti_TroubleWithTheOneCommand(t *testing.T) {
	redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
		proxy := srv.Proxy(t)
		m := locktest.ManagerAsIs(t, proxy.Client(t), holdfast.WithLease(4*time.Second))
		l := Multi(t, m.Mutex("b"), m.FairMutex("a"), m.Mutex("c"))
		sweep := locktest.ScriptOn("a", "multi_acquire")
		exist := func() int64 { return srv.Admin().Exists(t.Context(), "a", "b", "c").Val() }
		locktest.MustUnlock(t, locktest.MustLock(t, l))
		for name, trouble := range map[string]func(){
			"reply lost":    func() { proxy.LoseReply(sweep, 1) },
			"request lost":  func() { proxy.LoseRequest(sweep, 1) },
			"never replied": func() { proxy.SwallowReply(sweep, 1) },
			"flushed":       func() { srv.Admin().ScriptFlush(t.Context()) },
		} {
			proxy.Record()
			trouble()
			began := time.Now()
			lease := locktest.MustLock(t, l)
			redistest.WantMost(t, time.Since(began), 500*time.Millisecond, name+": after %v: when it is overdue")
			if n := exist(); n != 3 || !lease.Valid() {
				t.Errorf("%s: %d keys, valid %v", name, n, lease.Valid())
			}
			if name != "request lost" && proxy.Count(sweep) == 0 {
				t.Errorf("%s: there was no such command", name)
			}
			locktest.MustUnlock(t, lease)
			if n := exist(); n != 0 {
				t.Errorf("%s: %d keys after Unlock", name, n)
			}
			proxy.Heal()
			// A lock that is still being given up, after the first attempt, would be taken by itself.
			redistest.Eventually(t, locktest.Patience, name+": nothing is known", func() bool { return m.Stats().Locks == 0 })
		}
		// Redis is silent: the caller of TryLock gets its error in time.
		gate := proxy.HoldRequest(func([]string) bool { return true })
		began := time.Now()
		_, err := l.TryLock(t.Context())
		locktest.WantErr(t, err, holdfast.ErrUnavailable, nil)
		redistest.WantMost(t, time.Since(began), 2*time.Second, "after %v: when go-redis gives up")
		gate.Release()
		redistest.Eventually(t, locktest.Patience, "nothing is known", func() bool { return m.Stats().Locks == 0 })
		// The caller leaves before the reply, or before Redis has the command, or one of those for each lock that come
		// where the one for all stays unanswered.
		acquire := func(cmd []string) bool {
			return sweep(cmd) || slices.ContainsFunc([]string{"a", "b", "c"}, func(key string) bool { return locktest.ScriptOn(key, "lock_acquire")(cmd) })
		}
		for name, hold := range map[string]func(redistest.Match) *redistest.Gate{"reply": proxy.HoldReply, "request": proxy.HoldRequest} {
			gate := hold(acquire)
			ctx, cancel := context.WithCancel(t.Context())
			left := redistest.Begin(func() error { _, err := l.Lock(ctx); return err })
			gate.Wait(t)
			cancel()
			if err := <-left; !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
			gate.Release()
			redistest.Eventually(t, locktest.Patience, name+": none is held", func() bool { return exist() == 0 && m.Stats().Locks == 0 })
			proxy.Heal()
		}
	})
}

// The one command for all arrives when it has been given up: it takes nothing.
func TestMulti_LateCopyIsRefused(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, p := locktest.ManagerVia(t, srv)
		locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex("connected")))
		gate := p.HoldFirstRequest(locktest.ScriptOn("a", "multi_acquire"))
		p.Refuse(true) // else a new connection shows that the old one is dead, and each is asked for again
		_, err := Multi(t, m.Mutex("a"), m.Mutex("b")).TryLock(t.Context())
		p.Refuse(false)
		locktest.WantErr(t, err, holdfast.ErrUnavailable, holdfast.ErrNotAcquired)
		redistest.Eventually(t, locktest.Patience, "both are given up", func() bool {
			return srv.Admin().Exists(t.Context(), "holdfast_tombstones:{a}", "holdfast_tombstones:{b}").Val() == 2
		})
		mon := srv.Monitor(t)
		gate.Release()
		mon.Wait(t, `"exists" "a" "holdfast_tombstones:{a}"`, locktest.Patience)
		redistest.Want(t, srv.Admin().Exists(t.Context(), "a", "b").Val(), 0, "%d are held for nobody")
	})
}

// Another caller under the same context of another lock gets one of the locks while the request for
// all is under way. They are two owners: the Multi is refused, and nothing of it is left.
func TestMulti_RivalBesideItsOwnRequest(t *testing.T) {
	redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
		p := srv.Proxy(t)
		client := p.Client(t)
		m := locktest.ManagerAsIs(t, client)
		own := locktest.MustLock(t, m.Mutex("own"))
		ctx := own.Context(t.Context())
		const dead = "hf-5c6a0a3c-0f5e-4a37-9f1f-0d8f9c6b1a11:1" // so that "a" is free and waited for
		srv.Admin().RPush(t.Context(), "redisson_lock_queue:{a}", dead)
		srv.Admin().ZAdd(t.Context(), "redisson_lock_timeout:{a}", redis.Z{Score: float64(time.Now().Add(time.Hour).UnixMilli()), Member: dead})
		locktest.SpareConnections(t, client)
		gate := p.HoldFirstReply(locktest.ScriptOn("a", "multi_acquire"))
		p.Refuse(true) // else a new connection shows that the old one is dead, and each is asked for again
		all := locktest.Calls(Multi(t, m.FairMutex("a"), m.FairMutex("b")).TryLock, ctx)
		gate.Wait(t)
		beside := locktest.Got(t, m.FairMutex("b").TryLock, ctx)
		gate.Release()
		r := <-all
		p.Refuse(false)
		locktest.WantErr(t, r.Err, holdfast.ErrNotAcquired, nil)
		redistest.Want(t, m.Stats().Reentered, 0, "re-entered %d times")
		locktest.MustUnlock(t, beside, own)
		redistest.Eventually(t, locktest.Patience, "nothing is held", func() bool { return m.Stats().Held == 0 })
		redistest.Want(t, srv.Admin().Exists(t.Context(), "b").Val(), 0, "a lock that no caller has is held")
	})
}

// Members that are one server refuse each other. The calls say which ones are, instead of waiting for another owner.
func TestTwins(t *testing.T) {
	for says, servers := range map[string][]int{
		"members 1 and 2 are the same server":            {0, 0, 0},
		"members 1 and 3 are the same server":            {0, 1, 0},
		"members 2 and 3 are the same server":            {0, 1, 1},
		"members 2 and 5 are the same server: give each": {0, 1, 2, 3, 1},
	} {
		t.Run(says, redistest.Worlds(func(t *testing.T) {
			var all []*redistest.Server
			for range 4 {
				all = append(all, redistest.Start(t))
			}
			var locks []holdfast.Locker
			for _, s := range servers {
				locks = append(locks, locktest.ManagerOn(t, all[s]).Mutex("a"))
			}
			l, err := holdfast.NewRedlock(locks...)
			redistest.Must(t, err)
			for call, lock := range map[string]func(context.Context) (*holdfast.Lease, error){"Lock": l.Lock, "TryLock": l.TryLock} {
				ctx, cancel := context.WithTimeout(t.Context(), locktest.Patience)
				defer cancel()
				lease, err := lock(ctx)
				if err == nil { // a majority has answered before the twin; the lock is held while that is found out
					redistest.Eventually(t, locktest.Patience, call+" is refused", func() bool {
						_, err = l.TryLock(ctx)
						return errors.Is(err, holdfast.ErrInvalidOption)
					})
					locktest.MustUnlock(t, lease)
				}
				want := "the same server"
				if len(servers) > 3 || servers[1] == 1 {
					want = says
				}
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v", call, err)
				}
			}
		}))
	}
}

// Two databases of one server stop together.
func TestTwins_Databases(t *testing.T) {
	var locks []holdfast.Locker
	for db := range 3 {
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DB: db})
		t.Cleanup(func() { _ = client.Close() })
		locks = append(locks, locktest.ManagerFor(t, client).Mutex("a"))
	}
	if _, err := holdfast.NewRedlock(locks...); !errors.Is(err, holdfast.ErrInvalidOption) || !strings.Contains(err.Error(), "members 1 and 2 are databases") {
		t.Error(err)
	}
}
