package holdfast_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A copy of the request for the write side that arrives after the downgrade takes neither
// the lock nor a place in its queue, while the read side is held and after that.
func TestDowngrade_LateCopyIsRefused(t *testing.T) {
	for _, released := range []bool{false, true} {
		srv := redistest.Start(t)
		m, p := managerVia(t, srv, holdfast.WithLease(10*time.Second))
		gate := p.HoldRequest(scriptOn("a", "")) // the first copy
		l := m.RWMutex("a")
		write := mustLock(t, l)
		gate.Wait(t)
		read, err := l.RLock(write.Context(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		mustUnlock(t, write)
		if released {
			mustUnlock(t, read)
		}
		mon := srv.Monitor(t)
		gate.Release()
		mon.Wait(t, `"exists" "a" "holdfast_tombstones:{a}"`, 20*time.Second)
		if n := srv.Admin().Exists(t.Context(), "holdfast_rw_queue:{a}").Val(); n != 0 {
			t.Errorf("released %v: it stands in the queue", released)
		}
		holders := srv.Admin().HGetAll(t.Context(), "a").Val()
		if holders["mode"] == "write" || released && len(holders) > 0 {
			t.Errorf("released %v: held for nobody: %v", released, holders)
		}
		if !released {
			mustUnlock(t, read)
		}
	}
}

// What Extend has added is there after a downgrade.
func TestDowngrade_OfAnExtendedLease(t *testing.T) {
	srv := redistest.Start(t)
	m := managerOn(t, srv)
	const first = time.Second
	l := m.RWMutex("a", holdfast.WithFixedLease(first))
	write := mustLock(t, l)
	read, err := l.RLock(write.Context(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if err := read.Extend(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	mustUnlock(t, write)
	claimsItsRight(t, srv, read, 59*time.Second)
	select {
	case <-read.Done():
		t.Errorf("%v, %v before the deadline", read.Err(), time.Until(read.Deadline()))
	case <-time.After(2 * first):
	}
	mustUnlock(t, read)
}

// Extend that a downgrade overtakes, before Redis has it or before its answer is here,
// prolongs the read side.
func TestDowngrade_OvertakesExtend(t *testing.T) {
	for name, hold := range map[string]func(*redistest.Proxy, redistest.Match) *redistest.Gate{
		"the request":            (*redistest.Proxy).HoldRequest,
		"what Extend is told of": (*redistest.Proxy).HoldReply,
	} {
		t.Run(name, func(t *testing.T) {
			srv := redistest.Start(t)
			m, p := managerVia(t, srv)
			l := m.RWMutex("a", holdfast.WithFixedLease(5*time.Second))
			write := mustLock(t, l)
			read, err := l.RLock(write.Context(t.Context()))
			if err != nil {
				t.Fatal(err)
			}
			gate := hold(p, scriptOn("a", "1"))
			extended := make(chan error, 1)
			go func() { extended <- read.Extend(t.Context(), time.Minute) }()
			gate.Wait(t)
			mustUnlock(t, write)
			gate.Release()
			if err := <-extended; err != nil {
				t.Error(err)
			}
			claimsItsRight(t, srv, read, 59*time.Second)
			mustUnlock(t, read)
		})
	}
}

// claimsItsRight fails unless the only reader claims at least so much, and no more than
// its right in Redis allows.
func claimsItsRight(t *testing.T, srv *redistest.Server, read *holdfast.Lease, least time.Duration) {
	t.Helper()
	rights := srv.Admin().Keys(t.Context(), "*:rwlock_timeout:1").Val()
	if len(rights) != 1 {
		t.Fatalf("rights %q", rights)
	}
	if claimed, right := time.Until(read.Deadline()), srv.Admin().PTTL(t.Context(), rights[0]).Val(); claimed > right || claimed < least {
		t.Errorf("claimed for %v, the right ends in %v", claimed, right)
	}
}

// While a downgrade is unanswered Redis may still have the write side. Extend must not take
// that for the loss of the read side.
func TestDowngrade_UnansweredIsNoLoss(t *testing.T) {
	srv := redistest.Start(t)
	m, p := managerVia(t, srv)
	l := m.RWMutex("a")
	write := mustLock(t, l)
	read, err := l.RLock(write.Context(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	gate := p.HoldRequest(scriptOn("a", "4"))
	unlocked := make(chan error, 1)
	go func() { unlocked <- write.Unlock(t.Context()) }()
	gate.Wait(t)
	wantErr(t, read.Extend(t.Context(), time.Minute), holdfast.ErrUnavailable, holdfast.ErrLeaseLost)
	gate.Release()
	<-unlocked
	redistest.Eventually(t, patience, "the read side is prolonged", func() bool { return read.Extend(t.Context(), time.Minute) == nil })
	mustUnlock(t, read)
}
