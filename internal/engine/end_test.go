package engine_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"
	"unsafe"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/seam"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Redis still has the lock for the length of the margin, but the end has been reached and only not been handled.
func TestExtend_AfterTheEndIsTheLoss(t *testing.T) {
	t.Parallel()
	m, _, _, lease := heldFor(t, holdfast.WithFixedLease(time.Minute))
	inside(lease).SetEnd(time.Now().Add(-time.Millisecond)) // the schedule is about to say so
	locktest.WantErr(t, lease.Extend(t.Context(), time.Hour), holdfast.ErrLeaseLost, nil)
	inside(lease).Expire()
	redistest.Want(t, m.Stats().Lost, 1, "lost %d times")
}

// The host has slept beyond the deadline, and the connection has died meanwhile: that the repeated release finds
// nothing says that the lease was lost, and not that the first copy of it ran.
func TestUnlock_AfterASleepOfTheHost(t *testing.T) {
	_, p, srv, lease := heldFor(t, holdfast.WithLease(time.Minute))
	// The wall clock has gone on for an hour, and the monotonic one has not: a Time begins with the seconds of the
	// first, above 30 bits of nanoseconds.
	inside(lease).EditDeadline(func(d *time.Time) { *(*uint64)(unsafe.Pointer(d)) -= 3600 << 30 })
	if lease.Valid() {
		t.Fatal("valid after a sleep")
	}
	srv.Admin().Del(t.Context(), "a") // it has expired
	p.LoseReply(locktest.ScriptOn("a", "lock_release"), 1)
	locktest.WantErr(t, lease.Unlock(t.Context()), holdfast.ErrLeaseLost, nil)
}

// The end of a lease has passed when its manager is closed, and the timer has not run: the lease was lost.
func TestClose_AfterTheEndIsTheLoss(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	for _, c := range []struct {
		option holdfast.LockOption
		err    error
		line   string
	}{
		{holdfast.WithFixedLease(time.Minute), holdfast.ErrLeaseLost, "holdfast: lease lost lock=a reason=deadline"},
		{holdfast.WithMaxHold(time.Hour), holdfast.ErrMaxHold, "holdfast: maximum hold time reached lock=a"},
	} {
		log, option := locktest.Logged()
		m := locktest.ManagerOn(t, srv, option)
		lease := locktest.Got(t, m.Mutex("a", c.option).Lock, t.Context())
		inside(lease).SetEnd(time.Now().Add(-time.Millisecond)) // the schedule is about to say so
		redistest.Check(t, m.Close(t.Context()))
		if got := lease.Err(); !errors.Is(got, c.err) {
			t.Errorf("ended with %v, want %v", got, c.err)
		}
		if n := len(log.With(c.line)); n != 1 || len(log.With("WARN ")) != 1 {
			t.Errorf("%d lines of %s, %d warnings", n, c.line, len(log.With("WARN ")))
		}
		srv.Admin().FlushAll(t.Context())
	}
}

// A grant that several holds stood in the way of is the loss of each of them.
func TestLosses_OfSeveralReaders(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		log, option := locktest.Logged()
		m := locktest.ManagerOn(t, srv, option)
		for _, d := range []time.Duration{time.Minute, 2 * time.Minute, 3 * time.Minute} { // they share no hold
			if _, err := m.RWMutex("a", holdfast.WithFixedLease(d)).RLock(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		srv.Admin().FlushAll(t.Context())
		if _, err := m.RWMutex("a").Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		redistest.Eventually(t, locktest.Patience, "it is told", func() bool {
			return len(log.With("holdfast: lease lost lock=a reason=stolen")) == 3 && m.Stats().Lost == 3
		})
	})
}

// isScript matches calls of scripts.
func isScript(cmd []string) bool {
	_, _, ok := redistest.ScriptCall(cmd)
	return ok
}

// The end of a dead connection is no answer to a question of which a copy is on its way over another one.
func TestQuestion_CopyAnswers(t *testing.T) {
	t.Parallel()
	p := redistest.Start(t).Proxy(t)
	m := locktest.ManagerAsIs(t, p.Client(t))
	if _, err := m.Inspect(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	gate := p.HoldReply(isScript)
	keys := wire.ForceReleaseKeys("a")
	channel, rw := wire.Channels("a")
	call := &command.Call{Script: protocol.ForceRelease, Args: protocol.ForceRelease.Args(len(keys), append(keys, seam.Engine(m).Process.Publish, channel, rw)...), Patience: time.Second}
	q, answer := seam.Engine(m).Question()
	q.Stranded(call)
	gate.Wait(t)
	q.Replied(call, command.Reply{Err: errors.New("i/o timeout"), Outcome: lock.Unknown})
	gate.Release()
	if r := <-answer; r.Outcome != lock.Answered {
		t.Errorf("%v, %v", r.Outcome, r.Err)
	}
}

// Close has stopped what sends requests while a release was repeated: the next Unlock ends with that, and does not wait for
// an answer.
func TestUnlock_AfterCloseHasStopped(t *testing.T) {
	t.Parallel()
	m, p, _, lease := heldFor(t, holdfast.WithLease(time.Hour))
	p.LoseRequest(isScript, math.MaxInt)
	locktest.WantErr(t, lease.Unlock(t.Context()), holdfast.ErrUnavailable, holdfast.ErrClosed)
	locktest.WantErr(t, m.Close(t.Context()), holdfast.ErrUnavailable, nil)
	locktest.WantErr(t, lease.Unlock(t.Context()), holdfast.ErrClosed, nil)
}

// owing are the locks a, b and c of three managers on one server: nothing of them ends by itself. The last is behind a proxy.
func owing(t *testing.T) (srv *redistest.Server, managers []*holdfast.Manager, locks []holdfast.Locker, p *redistest.Proxy) {
	t.Helper()
	srv = redistest.Start(t)
	opts := []holdfast.Option{holdfast.WithLease(time.Hour), holdfast.WithMaxHold(2 * time.Hour)}
	last, p := locktest.ManagerVia(t, srv, opts...)
	managers = []*holdfast.Manager{locktest.ManagerOn(t, srv, opts...), locktest.ManagerOn(t, srv, opts...), last}
	for i, m := range managers {
		locks = append(locks, m.Mutex(string(rune('a'+i))))
	}
	return srv, managers, locks, p
}

func gone(t *testing.T, srv *redistest.Server) {
	t.Helper()
	for _, key := range []string{"a", "b", "c"} {
		redistest.Eventually(t, locktest.Patience, key+" is given back", func() bool { return srv.Admin().Exists(t.Context(), key).Val() == 0 })
	}
}

// A member of a Redlock reaches its limit, and the others are enough: it stays in Redis, as all will when the
// next has reached its own, and Unlock gives it back with them.
func TestOwed_OfAMemberThatEnds(t *testing.T) {
	t.Parallel()
	srv, managers, locks, _ := owing(t)
	l, err := holdfast.NewRedlock(locks...)
	redistest.Must(t, err)
	lease := locktest.MustLock(t, l)
	redistest.Eventually(t, locktest.Patience, "all have joined", func() bool {
		locktest.MustExtend(t, lease, 90*time.Minute) // prolongs those that have
		for _, key := range []string{"a", "b", "c"} {
			if srv.Admin().PTTL(t.Context(), key).Val() < 80*time.Minute {
				return false
			}
		}
		return true
	})
	seam.Engine(managers[0]).Inside("a").ReachLimit()
	if held := managers[0].Stats().Held; !lease.Valid() || held != 0 {
		t.Errorf("it has ended: %v; and of its member there are %d", lease.Err(), held)
	}
	redistest.Want(t, srv.Admin().Exists(t.Context(), "a").Val(), 1, "the member was given back")
	redistest.Check(t, locktest.Unlock(lease))
	gone(t, srv)
}

// One of several locks reaches its limit before all have been taken, and the caller goes.
func TestOwed_OfALeaseThatNobodyGets(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv, managers, locks, p := owing(t)
		l, err := holdfast.NewMulti(locks...)
		redistest.Must(t, err)
		gate := p.HoldReply(locktest.ScriptOn("c", "lock_acquire"))
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		failed := locktest.Calls(l.Lock, ctx)
		gate.Wait(t)
		seam.Engine(managers[1]).Inside("b").ReachLimit()
		leave()
		gate.Release()
		if err := (<-failed).Err; !errors.Is(err, holdfast.ErrNotAcquired) && !errors.Is(err, holdfast.ErrUnavailable) {
			t.Error(err) // a busy machine holds the reply for so long that Redis counts as silent
		}
		gone(t, srv)
	})
}

// A part that comes when the others have lapsed does not make up for them, even if no caller was told yet: in between,
// others may have had the lock.
func TestOwed_OfAPartAfterALapse(t *testing.T) {
	t.Parallel()
	srv, managers, locks, p := owing(t)
	l, err := holdfast.NewRedlock(locks...)
	redistest.Must(t, err)
	gate := p.HoldReply(locktest.ScriptOn("c", "lock_acquire"))
	lease := locktest.MustLock(t, l)
	gate.Wait(t)
	if !lease.Valid() {
		t.Fatal("not valid")
	}
	seam.Engine(managers[1]).Inside("b").SetEnd(time.Now().Add(-time.Second))
	gate.Release()
	redistest.Eventually(t, locktest.Patience, "the late part is given back", func() bool { return srv.Admin().Exists(t.Context(), "c").Val() == 0 })
	if lease.Valid() {
		t.Error("the lease is valid")
	}
}
