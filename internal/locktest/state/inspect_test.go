package state

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

const inspectedClient = "0c2d0a52-7b0c-4f0e-9d3b-3f7a5f1c6e11"

// A reader whose right has ended is counted, and not shown as if it held the lock.
func TestInspect_LeavesOutWhatIsOver(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m, ctx, db := locktest.ManagerOn(t, srv), t.Context(), srv.Admin()
	look := func(name string) holdfast.Info {
		t.Helper()
		return locktest.Inspected(t, m, name)
	}
	fields := []any{"mode", "read"}
	for i := range 200 {
		fields = append(fields, fmt.Sprintf("%s:%d", inspectedClient, i+1), 1)
	}
	db.HSet(ctx, "rw", fields...)
	db.PExpire(ctx, "rw", time.Minute)
	if info := look("rw"); info.Held || info.Kind != holdfast.KindRead || len(info.Holders) != 0 || info.Ended != 200 || info.TTL <= 0 {
		t.Errorf("readers whose right has ended: %+v", info)
	}
	// A reader of Redisson has several rights; the last of them may be the only one left.
	db.HSet(ctx, "rw", inspectedClient+":7", 3)
	db.Set(ctx, "{rw}:"+inspectedClient+":7:rwlock_timeout:3", 1, 30*time.Second)
	if info := look("rw"); !info.Held || len(info.Holders) != 1 || info.Ended != 199 || info.Holders[0].Holds != 3 ||
		info.Holders[0].TTL <= 0 || info.Holders[0].TTL > 30*time.Second || info.TTL <= 30*time.Second {
		t.Errorf("one right is left: %+v", info)
	}
}

// A queue is a list of places and a set of their times, which may differ. What stands in the list counts.
func TestInspect_CountsPlacesAndNotTimes(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, ctx, db := locktest.ManagerOn(t, srv), t.Context(), srv.Admin()
		now := db.Time(ctx).Val().UnixMilli()
		for _, prefix := range []string{"redisson_lock_", "holdfast_rw_"} {
			queue, times := prefix+"queue:{q}", prefix+"timeout:{q}"
			add := func(name string, n int, place bool, until int64) {
				for i := range n {
					id := fmt.Sprintf("%s:%s%d", inspectedClient, name, i)
					if place {
						db.RPush(ctx, queue, id)
					}
					if until != 0 {
						db.ZAdd(ctx, times, redis.Z{Score: float64(until), Member: id})
					}
				}
			}
			db.Del(ctx, queue, times)
			add("waits", 3, true, now+60_000)
			add("over", 2, true, now-1)
			add("timeless", 4, true, 0)
			add("left", 5, false, now-1)
			add("gone", 6, false, now+60_000)
			if info := locktest.Inspected(t, m, "q"); info.Waiters != 7 || info.Overdue != 2 || len(info.Queue) != 9 || info.Queue[3].Owner != inspectedClient+":over0" {
				t.Errorf("%s: %d waiters, %d overdue, %v", queue, info.Waiters, info.Overdue, info.Queue)
			}
			add("many", 2000, true, now+60_000)
			if info := locktest.Inspected(t, m, "q"); info.Waiters != 2002 || info.Overdue != 7 || len(info.Queue) != 100 || info.Queue[99].Owner != inspectedClient+":many90" {
				t.Errorf("long %s: %d waiters, %d overdue, %d shown", queue, info.Waiters, info.Overdue, len(info.Queue))
			}
			db.Del(ctx, queue, times)
		}
	})
}

// A key that holds something else is named.
func TestInspect_NamesBrokenKeys(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, ctx, db := locktest.ManagerOn(t, srv), t.Context(), srv.Admin()
		db.RPush(ctx, "redisson_lock_token:{a}", "x")
		db.Set(ctx, "redisson_lock_queue:{a}", "x", 0)
		db.Set(ctx, "holdfast_rw_timeout:{a}", "x", 0)
		info := locktest.Inspected(t, m, "a")
		if got := fmt.Sprint(info.Broken); info.Token != 0 || len(info.Broken) != 3 ||
			!strings.Contains(got, "redisson_lock_token:{a} list") || !strings.Contains(got, "redisson_lock_queue:{a} string") ||
			!strings.Contains(got, "holdfast_rw_timeout:{a} string") {
			t.Errorf("%+v", info)
		}
		for text, broken := range map[string]bool{"x": true, "1e3": true, "9007199254740992": true, "17": false, "-5": false} {
			db.Set(ctx, "redisson_lock_token:{b}", text, 0)
			info := locktest.Inspected(t, m, "b")
			if (len(info.Broken) == 1) != broken || (info.Token == 17) != (text == "17") || text != "17" && info.Token != 0 {
				t.Errorf("counter %q: %+v", text, info)
			}
		}
	})
}

// Its work is bounded, and it says what it left out.
func TestInspect_IsBounded(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, ctx, db := locktest.ManagerOn(t, srv), t.Context(), srv.Admin()
		for name, n := range map[string]int{"some": 1500, "many": 30_000} {
			p := db.Pipeline()
			p.HSet(ctx, name, "mode", "read")
			for i := range n {
				id := fmt.Sprintf("%s:%d", inspectedClient, i+1)
				p.HSet(ctx, name, id, 1)
				p.Set(ctx, "{"+name+"}:"+id+":rwlock_timeout:1", 1, time.Minute)
			}
			p.PExpire(ctx, name, time.Minute)
			redistest.Must(t, locktest.ErrOf(p.Exec(ctx)))
			info := locktest.Inspected(t, m, name)
			if !info.Held || len(info.Holders) != 1000 || info.More != n-1000 || info.Ended != 0 {
				t.Errorf("%d readers: %d shown, %d more, %d ended", n, len(info.Holders), info.More, info.Ended)
			}
		}
		// Nor do a few readers with very many rights cost more.
		db.HSet(ctx, "deep", "mode", "read", inspectedClient+":1", 1_000_000_000, inspectedClient+":2", 1_000_000_000)
		if info := locktest.Inspected(t, m, "deep"); info.More != 2 || !info.Held {
			t.Errorf("many rights: %+v", info)
		}
	})
}

// V1, V2: Inspect shows the value of the owner, whatever is in it, of each kind of lock and after each hand-off. It excludes as without one.
func TestInspect_Value(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		for _, value := range []string{"", "build-42", "42", "write", "writer", "a:b{c}%/ü", "\x00\n", strings.Repeat("ß", 64)} {
			m, other := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv, holdfast.WithValue("another"))
			wants := func(name string, kind holdfast.Kind, value string, of *holdfast.Lease) {
				t.Helper()
				info := locktest.Inspected(t, other, name)
				if len(info.Holders) != 1 || info.Kind != kind || info.Ended != 0 || info.Holders[0].Value != value || info.Holders[0].Write != (kind == holdfast.KindWrite) || info.Holders[0].TTL <= 0 {
					t.Errorf("%q: %+v", value, info)
				}
				locktest.MustExtend(t, of, 20*time.Minute) // it is renewed by the same id
			}
			v := holdfast.WithValue(value)
			for kind, pair := range map[holdfast.Kind][2]holdfast.Locker{
				holdfast.KindMutex: {m.Mutex("mutex", v, holdfast.WithFencing()), other.Mutex("mutex", holdfast.WithFencing())},
				holdfast.KindFair:  {m.FairMutex("fair", v), other.FairMutex("fair")},
				holdfast.KindWrite: {m.RWMutex("rw", v), other.RWMutex("rw")},
			} {
				name, seen := map[holdfast.Kind]string{holdfast.KindMutex: "mutex", holdfast.KindFair: "fair", holdfast.KindWrite: "rw"}[kind], kind
				if kind == holdfast.KindFair {
					seen = holdfast.KindMutex // in Redis it looks like one
				}
				lease := locktest.MustLock(t, pair[0])
				wants(name, seen, value, lease)
				_, err := pair[1].TryLock(t.Context())
				locktest.WantErr(t, err, holdfast.ErrNotAcquired, nil)
				waits := locktest.Waits(t, pair[1])
				queue := "redisson_lock_queue:{" + name + "}"
				if kind == holdfast.KindWrite {
					queue = "holdfast_rw_queue:{rw}"
				}
				locktest.Queued(t, srv, queue, 1)
				locktest.MustUnlock(t, lease)
				next := waits()
				wants(name, seen, "another", next)
				locktest.MustUnlock(t, next)
			}
			write := locktest.MustLock(t, m.RWMutex("rw", v))
			read, err := m.RWMutex("rw", v).RLock(write.Context(t.Context()))
			redistest.Must(t, err)
			locktest.MustUnlock(t, write)
			wants("rw", holdfast.KindRead, value, read)
			locktest.MustUnlock(t, read)
			if keys := locktest.LastingKeys(srv); len(keys) != 1 { // the fencing counter
				t.Errorf("keys: %q", keys)
			}
		}
	})
}

// Callers of a process with different values have holds of their own.
func TestInspect_ValuesAreNotPassedOn(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv, locktest.Unasked...)
		first := locktest.MustLock(t, m.Mutex("a", holdfast.WithValue("1")))
		waits := locktest.Waits(t, m.Mutex("a", holdfast.WithValue("2")))
		redistest.Eventually(t, locktest.Patience, "it waits", func() bool { return m.Stats().Waiting == 1 })
		locktest.MustUnlock(t, first)
		second := waits()
		if info := locktest.Inspected(t, m, "a"); info.Holders[0].Value != "2" {
			t.Errorf("%+v", info)
		}
		locktest.MustUnlock(t, second)
		for _, l := range []holdfast.Locker{m.Mutex("a", holdfast.WithValue(strings.Repeat("x", 129))), m.Mutex("a", holdfast.WithValue("\xff")), m.Semaphore("s", 1, holdfast.WithValue("x")).Locker(1)} {
			_, err := l.TryLock(t.Context())
			locktest.WantErr(t, err, holdfast.ErrInvalidOption, nil)
		}
		redistest.Check(t, locktest.ErrOf(locktest.ManagerOn(t, srv, holdfast.WithValue("x")).Semaphore("s", 1).TryAcquire(t.Context(), 1)))
	})
}
