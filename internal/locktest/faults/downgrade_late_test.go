package faults

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// While a downgrade is unanswered Redis may still have the write side. Extend must not take
// that for the loss of the read side.
func TestDowngrade_UnansweredIsNoLoss(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, p := locktest.ManagerVia(t, srv)
		l := m.RWMutex("a")
		write := locktest.MustLock(t, l)
		read := locktest.Got(t, l.RLock, write.Context(t.Context()))
		gate := p.HoldRequest(conversion)
		unlocked := redistest.Begin(func() error { return write.Unlock(t.Context()) })
		gate.Wait(t)
		locktest.WantErr(t, read.Extend(t.Context(), time.Minute), holdfast.ErrUnavailable, holdfast.ErrLeaseLost)
		gate.Release()
		<-unlocked
		redistest.Eventually(t, locktest.Patience, "the read side is prolonged", func() bool { return read.Extend(t.Context(), time.Minute) == nil })
		locktest.MustUnlock(t, read)
	})
}

// The reply to the first copy is lost. The read side ends a TTL after that was executed, and
// claims no more than that, or a TTL after a later copy.
func TestDowngrade_RepeatedClaimsItsRight(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, p := locktest.ManagerVia(t, srv)
		write, read := bothSides(t, m.RWMutex("a"))
		p.SwallowReply(conversion, 1)
		before := read.Deadline()
		locktest.MustUnlock(t, write)
		redistest.Eventually(t, locktest.Patience, "it has an answer", func() bool { return read.Deadline().After(before) })
		claimsItsRight(t, srv, read, 25*time.Second)
		locktest.MustUnlock(t, read)
	})
}

// Both sides are unlocked while the process does not know which of them Redis has: nothing is lost, and
// nothing is left. EndsWhileUnanswered shows it while the downgrade is under way.
func TestDowngrade_BothSidesAreUnlocked(t *testing.T) {
	t.Parallel()
	t.Run("after it was lost", func(t *testing.T) {
		redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
			m, p := locktest.ManagerVia(t, srv)
			write, read := bothSides(t, m.RWMutex("a"))
			p.LoseRequest(conversion, 1000)
			locktest.WantErr(t, write.Unlock(t.Context()), holdfast.ErrUnavailable, nil)
			locktest.MustUnlock(t, read)
			locktest.MustUnlock(t, write) // again
			redistest.Want(t, srv.Admin().Exists(t.Context(), "a").Val(), 0, "it is held")
		})
	})
	t.Run("after it was denied", func(t *testing.T) {
		srv := redistest.Start(t)
		client, allow := locktest.LimitedOn(t, srv)
		m := locktest.ManagerAsIs(t, client)
		write, read := bothSides(t, m.RWMutex("a"))
		allow("-evalsha", "-eval")
		locktest.WantErr(t, write.Unlock(t.Context()), holdfast.ErrUnavailable, nil)
		allow("+@all")
		locktest.MustUnlock(t, read, write)
		redistest.Want(t, srv.Admin().Exists(t.Context(), "a").Val(), 0, "it is held")
	})
}

// Both sides are unlocked, and the downgrade arrives between the two releases.
func TestDowngrade_ArrivesBetweenTheReleases(t *testing.T) {
	redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
		m, p := locktest.ManagerVia(t, srv)
		write, read := bothSides(t, m.RWMutex("a"))
		writer := ownerID.FindString(strings.Join(srv.Admin().HKeys(t.Context(), "a").Val(), " ")) + ":write"
		late := p.HoldRequest(conversion)
		unlocked := make(chan error, 2)
		go func() { unlocked <- locktest.Unlock(write) }()
		late.Wait(t)
		release := p.HoldRequest(redistest.All(locktest.ScriptOn("a", "rw_release"), redistest.Containing(writer)))
		mon := srv.Monitor(t)
		go func() { unlocked <- locktest.Unlock(read) }()
		release.Wait(t)
		mon.Wait(t, `"hexists" "a" "`+strings.TrimSuffix(writer, ":write")+`"`, locktest.Patience)
		late.Release()
		mon.Wait(t, `"hexists" "a" "`+writer+`"`, locktest.Patience)
		release.Release()
		for range 2 {
			redistest.Check(t, <-unlocked)
		}
		redistest.Eventually(t, locktest.Patience, "it is free", func() bool { return srv.Admin().Exists(t.Context(), "a").Val() == 0 })
	})
}

// A copy of the request for the write side ended without telling whether it ran, and arrives
// when the lock has been downgraded and given back.
func TestDowngrade_UnclearCopyIsRefused(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		p := srv.Proxy(t)
		client := p.ClientWith(t, func(o *redis.Options) { o.ReadTimeout = 2 * time.Second })
		m := locktest.ManagerAsIs(t, client)
		locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex("connected")))
		locktest.SpareConnections(t, client)
		p.Refuse(true) // else a new one shows that the first is dead, before its time is over
		gate := p.HoldFirstRequest(locktest.ScriptOn("a"))
		before := m.Stats().Troubles
		write, read := bothSides(t, m.RWMutex("a"))
		p.Refuse(false)
		gate.Wait(t)
		if m.Stats().Troubles == before {
			t.Fatal("the first copy was answered")
		}
		redistest.Eventually(t, locktest.Patience, "nobody waits for the first copy", func() bool { return locktest.Pending(m) == 0 })
		locktest.MustUnlock(t, write, read)
		mon := srv.Monitor(t)
		gate.Release()
		mon.Wait(t, `"exists" "a" "holdfast_tombstones:{a}"`, locktest.Patience)
		if held := srv.Admin().HGetAll(t.Context(), "a").Val(); len(held) > 0 {
			t.Errorf("held for nobody: %v", held)
		}
	})
}

// Every copy of the downgrade hangs when the read side is unlocked, and the first request to
// release the write side instead is lost: it is repeated.
func TestDowngrade_ReleaseBesideCopiesThatHang(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		p := srv.Proxy(t)
		m := locktest.ManagerAsIs(t, p.ClientWith(t, func(o *redis.Options) { o.ReadTimeout = 2 * locktest.Patience }))
		locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex("connected")))
		write, read := bothSides(t, m.RWMutex("a"))
		var gates []*redistest.Gate
		for range 4 {
			gates = append(gates, p.HoldFirstRequest(conversion))
		}
		gates = append(gates, p.HoldRequest(conversion)) // those whose connections are given up have successors
		locktest.WantErr(t, write.Unlock(t.Context()), holdfast.ErrUnavailable, nil)
		for _, g := range gates[:4] {
			g.Wait(t)
		}
		p.LoseRequest(redistest.All(locktest.ScriptOn("a", "rw_release"), redistest.Containing(":write")), 1)
		locktest.MustUnlock(t, read)
		redistest.Eventually(t, locktest.Patience, "both sides are given back", func() bool { return locktest.Pending(m) == 0 })
		locktest.MustUnlock(t, locktest.MustLock(t, m.RWMutex("a")))
		for _, g := range gates {
			g.Release()
		}
	})
}

// Redis is cut off after that: who asks once is told so.
func TestDowngrade_TryLockBesideAReleaseThatIsNotAnswered(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, p := locktest.ManagerVia(t, srv)
		write, read := bothSides(t, m.RWMutex("a"))
		p.LoseRequest(conversion, 1000)
		locktest.WantErr(t, write.Unlock(t.Context()), holdfast.ErrUnavailable, nil)
		p.Refuse(true)
		p.Cut()
		locktest.WantErr(t, read.Unlock(t.Context()), holdfast.ErrUnavailable, nil)
		tried := redistest.Begin(func() error { _, err := m.RWMutex("a").TryLock(context.Background()); return err })
		locktest.WantErr(t, redistest.Next(t, tried, "it goes on"), holdfast.ErrUnavailable, nil)
		p.Heal()
	})
}

// While a downgrade is unanswered the lock is deleted, and granted to another caller of the process: both
// sides that Redis may still have are given back, each once.
func TestDowngrade_UnansweredUnderAnotherGrant(t *testing.T) {
	redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
		m, p := locktest.ManagerThatHangs(t, srv, append(locktest.Unasked, holdfast.WithLease(time.Hour))...)
		write, read := bothSides(t, m.RWMutex("a"))
		gate := p.HoldReply(conversion)
		unlocked := redistest.Begin(func() error { return write.Unlock(context.Background()) })
		gate.Wait(t)
		srv.Admin().Del(t.Context(), "a")
		p.Record()
		next := locktest.MustLock(t, m.RWMutex("a"))
		locktest.WantErr(t, read.Unlock(t.Context()), holdfast.ErrLeaseLost, nil)
		locktest.WantErr(t, <-unlocked, holdfast.ErrLeaseLost, nil)
		gate.Release()
		locktest.MustUnlock(t, next)
		redistest.Must(t, m.Close(t.Context()))
		given := redistest.All(locktest.ScriptOn("a", "rw_release"), func(cmd []string) bool {
			_, argv, _ := redistest.ScriptCall(cmd)
			return len(argv) > 3 // with a tombstone
		})
		if n := p.Count(given); n != 2 {
			t.Errorf("%d releases: %q", n, p.Commands())
		}
	})
}
