package faults

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/locktest/several"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A request that puts a waiter into the queue is lost and repeated, with one more waiter:
// both come behind one of another process, who was there first.
func TestFair_NewWaiterBesideALostRequest(t *testing.T) {
	redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
		const queue = "redisson_lock_queue:{a}"
		holder, other := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv, locktest.Unasked...)
		m, p := locktest.ManagerThatHangs(t, srv, locktest.Unasked...)
		held := locktest.MustLock(t, holder.FairMutex("a"))
		m.FairMutex("a").LockAsync(t.Context())
		locktest.Queued(t, srv, queue, 1)
		gate := p.HoldFirstRequest(locktest.JoinOn("a"))
		m.FairMutex("a").LockAsync(t.Context())
		gate.Wait(t)
		lost := time.Now()
		other.FairMutex("a").LockAsync(t.Context())
		locktest.Queued(t, srv, queue, 2)
		place := srv.Admin().LRange(t.Context(), queue, 1, 1).Val()[0]
		m.FairMutex("a").LockAsync(t.Context())
		locktest.Queued(t, srv, queue, 4)
		redistest.WantMost(t, time.Since(lost), 500*time.Millisecond, "the lost one comes %v later: when it is overdue")
		gate.Release()
		if ids := srv.Admin().LRange(t.Context(), queue, 0, -1).Val(); ids[1] != place {
			t.Errorf("%s, who came second, is not the second of %q", place, ids)
		}
		locktest.MustUnlock(t, held)
	})
}

// A key that holds a hash of an application's is refused by its size: to read its fields
// would hold up the server for as long as there are many.
func TestMutex_DoesNotReadAStrangersHash(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		redistest.Must(t, srv.Admin().HSet(t.Context(), "a", "field", 1, "another", 2).Err())
		_, err := locktest.ManagerOn(t, srv).Mutex("a").TryLock(t.Context())
		locktest.WantErr(t, err, holdfast.ErrWrongKind, nil)
		redistest.Want(t, srv.CommandCalls("hkeys", "hgetall", "hvals"), 0, "it was read %d times")
	})
}

// A caller does not wait for an application's hash, because no release of it will come. That holds for a hash that was there before the
// caller, and for one that comes while it waits.
func TestMutex_DoesNotWaitForAStrangersHash(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv)
		for name, l := range map[string]holdfast.Locker{"mutex": m.Mutex("mutex"), "fair": m.FairMutex("fair")} {
			srv.Admin().HSet(t.Context(), name, "candidate:7", 12)
			_, err := l.TryLock(t.Context())
			locktest.WantErr(t, err, holdfast.ErrWrongKind, nil)
			_, err = l.Lock(t.Context())
			locktest.WantErr(t, err, holdfast.ErrWrongKind, nil)
			srv.Admin().Del(t.Context(), name)
			held := locktest.MustLock(t, l)
			waits := redistest.Begin(func() error { _, err := locktest.ManagerOn(t, srv).Mutex(name).Lock(t.Context()); return err })
			redistest.Eventually(t, locktest.Patience, "it waits", func() bool { return srv.Admin().LLen(t.Context(), "redisson_lock_queue:{"+name+"}").Val() == 1 })
			srv.Admin().Del(t.Context(), name)
			srv.Admin().HSet(t.Context(), name, "candidate:7", 12)
			locktest.WantErr(t, <-waits, holdfast.ErrWrongKind, nil)
			_ = held.Unlock(t.Context())
			if n := srv.Admin().HGet(t.Context(), name, "candidate:7").Val(); n != "12" {
				t.Errorf("%s: the hash has %q", name, n)
			}
		}
	})
}

// A grant shows that the hold before it was lost. The caller that waited for it has it: no caller
// asks for the lock again.
func TestFair_GrantAfterALossThatNobodyNoticed(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m := locktest.ManagerOn(t, srv)
	held := locktest.MustLock(t, m.FairMutex("a"))
	got := locktest.Waits(t, m.FairMutex("a"))
	locktest.Queued(t, srv, "redisson_lock_queue:{a}", 1)
	mon := srv.Monitor(t)
	srv.Admin().Del(t.Context(), "a")
	locktest.MustUnlock(t, got())
	locktest.WantErr(t, held.Unlock(t.Context()), holdfast.ErrLeaseLost, nil)
	redistest.Must(t, m.Close(t.Context()))
	mon.Wait(t, `"publish" "redisson_lock__channel:{a}"`, locktest.Patience)
	named := make(map[string]bool) // the next, and the lost one, which is given back
	for _, line := range mon.Lines() {
		if id := ownerID.FindString(line); id != "" && strings.Contains(line, `"a"`) {
			named[id] = true
		}
	}
	if len(named) > 2 {
		t.Errorf("the lock was asked for by another: %v", named)
	}
}

var ownerID = regexp.MustCompile(`hf-[0-9a-f-]+:[0-9]+`)

// A lock of a Multi is just being given back by another caller: that is waited for, as by a mutex's TryLock,
// and not taken for another owner.
func TestMulti_TryLockBesideARelease(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, p := locktest.ManagerVia(t, srv, holdfast.WithLease(time.Hour))
		held := locktest.MustLock(t, m.Mutex("a"))
		gate := p.HoldRequest(locktest.ReleaseOn("a"))
		unlocked := redistest.Begin(func() error { return locktest.Unlock(held) })
		gate.Wait(t)
		l := several.Multi(t, m.Mutex("a"), m.Mutex("b"))
		tried := locktest.Calls(l.TryLock, t.Context())
		redistest.Eventually(t, locktest.Patience, "it waits", func() bool { return m.Stats().Waiting > 0 })
		gate.Release()
		locktest.MustUnlock(t, locktest.Granted(t, tried))
		locktest.WantErr(t, <-unlocked, nil, nil)
	})
}
