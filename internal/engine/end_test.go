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
	m, err := holdfast.New(p.Client(t))
	redistest.Must(t, err)
	defer m.Close(context.Background())
	if _, err := m.Inspect(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	gate := p.HoldReply(isScript)
	keys := wire.ForceReleaseKeys("a")
	lock, rw := wire.Channels("a")
	call := &command.Call{Script: protocol.ForceRelease, Args: protocol.ForceRelease.Args(len(keys), append(keys, seam.Engine(m).Process.Publish, lock, rw)...), Patience: time.Second}
	q, answer := seam.Engine(m).Question()
	q.Stranded(call)
	gate.Wait(t)
	q.Replied(call, command.Reply{Err: errors.New("i/o timeout"), Outcome: command.Unknown})
	gate.Release()
	if r := <-answer; r.Outcome != command.Answered {
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
