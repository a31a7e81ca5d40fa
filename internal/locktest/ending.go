package locktest

import (
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// endingScenarios are about holders that lose the lock or die, for what every kind of lock has, and for the read side.
var endingScenarios = map[string]func(*handed){
	// AC-22
	"ForceUnlockEndsTheLeaseAndWakesWaiters": func(e *handed) {
		m, operator := e.Manager(), e.Manager()
		l := e.MustLock(e.ours(m))
		got := e.Locking(e.Lock(e.Manager(byMessage...)))
		e.Listening(1)
		if freed, err := e.ForceUnlock(operator); err != nil || !freed {
			e.Fatalf("ForceUnlock: %v, %v", freed, err)
		}
		next := e.Soon("the waiter", got)
		e.WantLost(l, holdfast.LostDeleted, holdfast.LostStolen)
		e.WantErr(l.Unlock(bg), holdfast.ErrLeaseLost)
		if !next.Valid() || len(e.Holders()) != 1 {
			e.Errorf("the waiter was disturbed: %v", e.Holders())
		}
		e.MustUnlock(next)
		if freed, err := e.ForceUnlock(operator); err != nil || freed {
			e.Errorf("ForceUnlock of a free lock: %v, %v", freed, err)
		}
	},

	// AC-30, F2
	"RestartWithoutDataIsALoss": func(e *handed) {
		m := e.Manager(holdfast.WithLease(2 * lease)) // long enough for the restart
		l := e.MustLock(e.ours(m))
		e.srv.Restart()
		e.WantLost(l, holdfast.LostDeleted)
		e.WantErr(l.Unlock(bg), holdfast.ErrLeaseLost)
		again := e.MustLock(e.ours(m)) // and the next one is renewed
		e.Renews(m, 1)
		e.MustUnlock(again)
	},

	// AC-46, L4: the holder's process dies; no message comes at all.
	"KilledHolderIsOutlivedByItsTTL": func(e *handed) {
		p := e.startHolder(lease)
		m := e.Manager(byMessage...)
		got := e.Locking(e.Lock(m))
		e.Listening(1)
		expiry := e.KillHolder(p)
		l := <-got
		late := time.Since(expiry)
		redistest.WantMost(e, late, e.bound(prompt), "granted %v after the expiry")
		e.Worst("L4:after-the-expiry", late)
		e.MustUnlock(l)
	},

	// AC-33, F1: a paused process wakes up after its lease and touches no lock of another owner.
	"PausedHolderWakesUpToALoss": func(e *handed) {
		p := e.startHolder(time.Second / 2)
		p.Pause()
		next := e.MustLock(e.Lock(e.Manager(holdfast.WithLease(time.Hour))))
		p.Resume()
		p.Expect(e, "valid false") // before any I/O of its own
		p.Expect(e, "lost deadline")
		p.Send("unlock")
		p.Expect(e, "unlock lost")
		if !next.Valid() || e.PTTL() < time.Minute/2 || len(e.Holders()) != 1 {
			e.Errorf("the next holder was disturbed: %v", e.Holders())
		}
		e.MustUnlock(next)
	},
}

// startHolder starts a process that holds the lock.
func (e *handed) startHolder(ttl time.Duration) *redistest.Process {
	e.Helper()
	kind := e.kind.Name
	if e.reads {
		kind = "read"
	}
	p := redistest.StartProcess(e, HolderRole, kind, e.Server().Addr(), e.srv.Password(), e.Key, ttl.String())
	p.Expect(e, "held")
	return p
}
