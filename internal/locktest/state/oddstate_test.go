package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// What an operator, or another program, has made of the keys.

// The holder's key ends, and its name is taken by something of another kind, while two processes
// wait for a side: the first is told so and gives up, and that grants the second nothing.
func TestOdd_NameTakenUnderReadersAndWriters(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	a, b := locktest.ManagerOn(t, srv, holdfast.WithPollInterval(100*time.Millisecond)), locktest.ManagerOn(t, srv, holdfast.WithPollInterval(100*time.Millisecond))
	for name, take := range map[string]func(redis.Pipeliner){
		"mutex": func(p redis.Pipeliner) {
			p.HSet(t.Context(), "x", "hf-0a:1", 1)
			p.PExpire(t.Context(), "x", time.Minute)
		},
		"hash":   func(p redis.Pipeliner) { p.HSet(t.Context(), "x", "name", "bob", "mail", "b@x") },
		"string": func(p redis.Pipeliner) { p.Set(t.Context(), "x", "foo", 0) },
	} {
		for _, side := range []string{"write", "read"} {
			t.Run(name+" under "+side, func(t *testing.T) {
				holder := locktest.ManagerOn(t, srv)
				locktest.MustLock(t, holder.RWMutex("x"))
				var got []<-chan holdfast.Result
				for i, m := range []*holdfast.Manager{a, b} {
					if l := m.RWMutex("x"); side == "write" {
						got = append(got, l.LockAsync(t.Context()))
					} else {
						got = append(got, l.RLockAsync(t.Context()))
					}
					locktest.Queued(t, srv, "holdfast_rw_queue:{x}", int64(i+1))
				}
				_, err := srv.Admin().TxPipelined(t.Context(), func(p redis.Pipeliner) error {
					p.Del(t.Context(), "x")
					take(p)
					return nil
				})
				redistest.Must(t, err)
				before := srv.Admin().Dump(t.Context(), "x").Val()
				for _, c := range got {
					locktest.WantErr(t, (<-c).Err, holdfast.ErrWrongKind, nil)
				}
				for _, m := range []*holdfast.Manager{a, b} {
					redistest.Eventually(t, locktest.Patience, "all is given up", func() bool { return locktest.Pending(m) == 0 })
				}
				if after := srv.Admin().Dump(t.Context(), "x").Val(); after != before {
					t.Errorf("%v, TTL %v", srv.Admin().HGetAll(t.Context(), "x").Val(), srv.Admin().PTTL(t.Context(), "x").Val())
				}
				srv.Admin().FlushAll(t.Context())
			})
		}
	}
}

// One of the two keys of a queue is deleted. Each waiter takes its place again, in the order of
// before if it was the times, and is served without a delay. Nothing stays forever.
func TestOdd_HalfOfAQueue(t *testing.T) {
	t.Parallel()
	quick := []holdfast.Option{holdfast.WithFairPatience(600 * time.Millisecond), holdfast.WithPollInterval(100 * time.Millisecond)}
	for name, l := range map[string]struct {
		of          func(*holdfast.Manager) holdfast.Locker
		list, times string
		waiters     []int // which of two processes
	}{
		"fair":  {func(m *holdfast.Manager) holdfast.Locker { return m.FairMutex("x") }, "redisson_lock_queue:{x}", "redisson_lock_timeout:{x}", []int{0, 0, 0, 1}},
		"mutex": {func(m *holdfast.Manager) holdfast.Locker { return m.Mutex("x") }, "redisson_lock_queue:{x}", "redisson_lock_timeout:{x}", []int{0, 1}},
		"write": {func(m *holdfast.Manager) holdfast.Locker { return m.RWMutex("x") }, "holdfast_rw_queue:{x}", "holdfast_rw_timeout:{x}", []int{0, 1}},
	} {
		for _, lost := range []string{l.list, l.times} {
			t.Run(name+" without "+lost, func(t *testing.T) {
				redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
					holder, processes := locktest.ManagerOn(t, srv), [2]*holdfast.Manager{locktest.ManagerOn(t, srv, quick...), locktest.ManagerOn(t, srv, quick...)}
					held := locktest.MustLock(t, l.of(holder))
					var got []func() *holdfast.Lease
					for i, p := range l.waiters {
						got = append(got, locktest.Waits(t, l.of(processes[p])))
						locktest.Queued(t, srv, l.list, int64(i+1))
					}
					before := srv.Admin().LRange(t.Context(), l.list, 0, -1).Val()
					srv.Admin().Del(t.Context(), lost)
					redistest.Eventually(t, locktest.Patience, "all stand in both, once", func() bool {
						ids, times := srv.Admin().LRange(t.Context(), l.list, 0, -1).Val(), srv.Admin().ZCard(t.Context(), l.times).Val()
						n := len(l.waiters)
						distinct := slices.Clone(ids)
						slices.Sort(distinct)
						return len(ids) == n && len(slices.Compact(distinct)) == n && int(times) == n
					})
					if after := srv.Admin().LRange(t.Context(), l.list, 0, -1).Val(); lost == l.times && !slices.Equal(before, after) {
						t.Errorf("%q stand there, and before %q", after, before)
					}
					srv.RequireTTLs(t)
					granted := time.Now()
					locktest.MustUnlock(t, held)
					leases := make(chan *holdfast.Lease)
					for _, get := range got {
						go func() { leases <- get() }()
					}
					for range got {
						locktest.MustUnlock(t, <-leases)
					}
					if d := time.Since(granted); d > 2*time.Second && testing.Short() {
						t.Errorf("all were served after %v: a claim had to expire", d)
					}
					srv.RequireNoKeys(t, "holdfast_tombstones:")
				})
			})
		}
	}
}

// A lock whose TTL another client has taken away gets one again that no lease outlasts: not by an Extend for
// less, nor by a renewal after one for more.
func TestOdd_LockWithoutTTL(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv, holdfast.WithLease(6*time.Second))
		covers := func(key string, lease *holdfast.Lease) {
			t.Helper()
			if ttl := srv.Admin().PTTL(t.Context(), key).Val(); ttl < time.Until(lease.Deadline()) {
				t.Errorf("%s: a TTL of %v, and the lease has %v", key, ttl, time.Until(lease.Deadline()))
			}
		}
		restored := func(key string) {
			redistest.Eventually(t, locktest.Patience, "a TTL again", func() bool { return srv.Admin().PTTL(t.Context(), key).Val() > 0 })
		}
		for name, l := range map[string]holdfast.Locker{"a": m.Mutex("a"), "b": m.FairMutex("b"), "c": m.RWMutex("c"), "d": m.RWMutex("d").RLocker()} {
			lease := locktest.MustLock(t, l)
			srv.Admin().Persist(t.Context(), name)
			redistest.Check(t, lease.Extend(t.Context(), 20*time.Millisecond))
			covers(name, lease)
			redistest.Check(t, lease.Extend(t.Context(), time.Hour))
			srv.Admin().Persist(t.Context(), name)
			restored(name)
			covers(name, lease)
			locktest.MustUnlock(t, lease)
		}
		srv.RequireNoKeys(t)
	})
}

// The lock is deleted under a waiter that has been granted it, and taken again by another caller of that
// process; the message comes after that. Redis is asked, and the holder loses nothing.
func TestOdd_MessageOfADeletedGrant(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv, append(locktest.Unasked, holdfast.WithLease(time.Hour))...)
		held := locktest.MustLock(t, m.FairMutex("a"))
		got := locktest.Waits(t, m.FairMutex("a"))
		locktest.Queued(t, srv, "redisson_lock_queue:{a}", 1)
		redistest.Eventually(t, locktest.Patience, "it has its answer", func() bool { return locktest.Hears(t, srv, m) })
		asked, now := m.Stats().Commands, srv.Admin().Time(t.Context()).Val()
		tellFirst(t, srv, "g %s 2000 "+fmt.Sprintf("%d %d 1 0 0", now.Unix(), now.Nanosecond()/1000))
		redistest.Eventually(t, locktest.Patience, "Redis is asked", func() bool { return m.Stats().Commands > asked && locktest.Pending(m) == 0 })
		redistest.Want(t, held.Valid(), true, "the holder has lost the lock")
		locktest.MustUnlock(t, held)
		locktest.MustUnlock(t, got())
	})
}

// A caller's request has been granted, but its answer is on its way for long; the lock is deleted meanwhile,
// and granted to another caller of the process, who is told at once. The first one's answer ends that hold,
// which Redis has: it is given back there, and not left for the length of its lease.
func TestOdd_AnswerOfADeletedGrant(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		rival := locktest.ManagerOn(t, srv)
		m, p := locktest.ManagerThatHangs(t, srv, append(locktest.Unasked, holdfast.WithLease(time.Hour))...)
		l := m.FairMutex("a")
		locktest.MustLock(t, locktest.ManagerOn(t, srv).FairMutex("a"))
		first := locktest.Waits(t, l)
		locktest.Queued(t, srv, "redisson_lock_queue:{a}", 1)
		redistest.Eventually(t, locktest.Patience, "the first has its answer", func() bool { return locktest.Hears(t, srv, m) })
		second := locktest.Waits(t, l)
		locktest.Queued(t, srv, "redisson_lock_queue:{a}", 2)
		srv.Admin().Del(t.Context(), "a")
		gate := p.HoldFirstReply(locktest.ScriptOn("a", "lock_acquire"))
		copies := p.HoldRequest(locktest.ScriptOn("a", "lock_acquire")) // they would take the lock before the rival comes
		defer copies.Release()
		tellFirst(t, srv, "o %s") // it asks
		gate.Wait(t)
		srv.Admin().Del(t.Context(), "a")
		_, err := rival.FairMutex("a").TryLock(t.Context()) // grants it to the second
		locktest.WantErr(t, err, holdfast.ErrNotAcquired, nil)
		lease := second()
		redistest.Eventually(t, locktest.Patience, "it is renewed", func() bool { return srv.Admin().PTTL(t.Context(), "a").Val() > time.Minute })
		gate.Release()
		other := first()
		locktest.WantErr(t, lease.Unlock(t.Context()), holdfast.ErrLeaseLost, nil)
		locktest.MustUnlock(t, locktest.MustLock(t, rival.FairMutex("a")))
		locktest.WantErr(t, other.Unlock(t.Context()), holdfast.ErrLeaseLost, nil)
	})
}

// tellFirst publishes a message to the process of the first waiter in the queue of a, whose number it has.
func tellFirst(t *testing.T, srv *redistest.Server, format string) {
	t.Helper()
	id := srv.Admin().LIndex(t.Context(), "redisson_lock_queue:{a}", 0).Val()
	manager, number, _ := strings.Cut(strings.TrimPrefix(id, "hf-"), ":")
	if srv.Admin().Publish(t.Context(), "holdfast_inbox:"+manager, fmt.Sprintf(format, number)).Val() != 1 {
		t.Fatal("nobody hears")
	}
}
