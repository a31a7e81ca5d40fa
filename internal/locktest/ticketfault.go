package locktest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// handedFaultScenarios are about the bad days of tickets: answers that are lost or late, callers that leave, data that is lost.
var handedFaultScenarios = map[string]func(*handed){
	// The copy finds what the first one has left.
	"LostAnswerOfDetach": func(e *handed) {
		m, p := e.Via()
		l := e.MustLock(e.ours(m))
		p.LoseReply(stayOf(e.Key), 1)
		ticket := e.mustDetach(l, longStay)
		e.MustUnlock(e.mustAttach(e.Manager(), ticket))
		e.Clean(m)
	},

	// The copy comes when the ticket is over: that is what the caller wanted, and no loss.
	"LostAnswerOfDetachForLess": func(e *handed) {
		m, p := e.Via()
		const short = 20 * time.Millisecond
		l := e.MustLock(e.ours(m))
		p.LoseReply(stayOf(e.Key), 1)
		gate := p.HoldRequest(stayOf(e.Key))
		began := time.Now()
		time.AfterFunc(2*short, gate.Release)
		e.mustDetach(l, short)
		if took := time.Since(began); took < 2*short {
			e.Errorf("the copy was answered within %v", took)
		}
		if n := m.Stats().Lost; n != 0 {
			e.Errorf("%d losses", n)
		}
		e.Free()
		e.Clean(m)
	},

	// The ticket works once Redis has executed the request. A late copy does not take the lock back.
	"UnansweredDetach": func(e *handed) {
		lines, logger := Logged()
		m, p := e.Via(logger)
		l := e.MustLock(e.ours(m))
		gate := p.HoldFirstRequest(stayOf(e.Key))
		rest := p.HoldRequest(stayOf(e.Key))
		ticket, err := l.Detach(bg, longStay)
		if ticket == "" {
			e.Fatal(err)
		}
		e.WantErr(err, holdfast.ErrUnavailable)
		e.WantErr(l.Err(), holdfast.ErrReleased)
		rest.Release()
		e.MustUnlock(l) // waits for it
		second := e.mustAttach(e.Manager(), ticket)
		gate.Release()
		for range 3 { // the late copy is before these
			e.Busy(e.Lock(m).TryLock)
		}
		if err := second.Extend(bg, lease); err != nil && !e.excused(err) {
			e.Error(err)
		}
		e.MustUnlock(second)
		e.Clean(m)
		if said := lines.With("lost"); len(said) != 0 {
			e.Errorf("the log says %q", said)
		}
	},

	// Its end passes while the request is under way: what Redis does not have is not left to the ticket.
	"LeaseThatEndsIsNotDetached": func(e *handed) {
		m, p := e.Via()
		const short = 400 * time.Millisecond
		l := e.MustLock(e.ours(m, holdfast.WithFixedLease(short)))
		gate := p.HoldRequest(stayOf(e.Key))
		time.AfterFunc(short, gate.Release)
		ticket, err := l.Detach(bg, longStay)
		if errors.Is(err, holdfast.ErrUnavailable) { // the lease is shorter than what Detach waits for
			err, ticket = Unlock(l), ""
			if err == nil {
				err = holdfast.ErrLeaseLost // what an Unlock says of an end by the TTL
			}
		}
		e.WantErr(err, holdfast.ErrLeaseLost)
		e.Free()

		over := e.MustLock(e.ours(m, holdfast.WithFixedLease(short)))
		<-over.Done()
		late, err := over.Detach(bg, longStay)
		e.WantErr(err, holdfast.ErrLeaseLost)
		gone := e.MustLock(e.ours(m))
		e.srv.Admin().FlushAll(bg)
		none, err := gone.Detach(bg, longStay)
		e.WantErr(err, holdfast.ErrLeaseLost)
		if ticket+late+none != "" {
			e.Errorf("tickets %q, %q, %q", ticket, late, none)
		}
		e.Clean(m)
	},

	// A fail-over without the last writes is the same.
	"DataLostBetweenIsALoss": func(e *handed) {
		m := e.Manager()
		for _, lose := range []func(){
			func() {
				if freed, err := e.ForceUnlock(m); !freed || err != nil {
					e.Error(freed, err)
				}
			},
			func() { e.srv.Admin().FlushAll(bg) },
		} {
			ticket := e.mustDetach(e.MustLock(e.ours(m)), longStay)
			lose()
			other := e.MustLock(e.Lock(e.Manager()))
			_, err := m.Attach(bg, ticket)
			e.WantErr(err, holdfast.ErrLeaseLost)
			e.MustUnlock(other)
			_, err = m.Attach(bg, ticket)
			e.WantErr(err, holdfast.ErrLeaseLost)
		}
		e.Clean(m)
	},

	// It finds the owner id gone, sets no longer TTL, and is no loss.
	"RenewalUnderWay": func(e *handed) {
		lines, logger := Logged()
		m, p := e.Via(holdfast.WithLease(4*lease), logger)
		l := e.MustLock(e.ours(m))
		gate := p.HoldFirstRequest(ScriptOn(e.Key, "renew", "renew_read", "permit_renew"))
		gate.Wait(e)
		ticket := e.mustDetach(l, lease)
		gate.Release()
		e.Busy(e.Lock(m).TryLock)
		if h := e.holder(true); h.TTL > lease {
			e.Errorf("the ticket has %v", h.TTL)
		}
		e.MustUnlock(e.mustAttach(m, ticket))
		if said := lines.With("lost"); len(said) != 0 || m.Stats().Lost != 0 {
			e.Errorf("%d losses, %q", m.Stats().Lost, said)
		}
		e.Clean(m)
	},

	// A waiter knows when the ticket ends, and learns that the process that has attached it for less may end before, which dies.
	"AttachedForLessByOneThatDies": func(e *handed) {
		giver, waiter := e.Manager(), e.Manager(Unasked...)
		ticket := e.mustDetach(e.MustLock(e.ours(giver)), 10*lease)
		waiting := e.Parking(waiter, 1, e.Lock(waiter))
		e.Listening(1)
		m, p := e.Via(holdfast.WithLease(lease / 2))
		began := time.Now()
		e.mustAttach(m, ticket)
		p.BlackHole(true)
		next := <-waiting
		redistest.WantMost(e, time.Since(began), lease, "it waited for %v")
		e.MustUnlock(next)
	},

	// The caller leaves before the answer: the lock goes back to the ticket, for what was left of its time. A copy that comes later takes
	// nothing.
	"AttachGivenUpGoesBack": func(e *handed) {
		giver := e.Manager()
		for _, hold := range []func(*redistest.Proxy, redistest.Match) *redistest.Gate{
			(*redistest.Proxy).HoldFirstReply, (*redistest.Proxy).HoldFirstRequest,
		} {
			ticket := e.mustDetach(e.MustLock(e.ours(giver, e.fenced()...)), longStay)
			owner := e.holder(true).Owner
			m, p := e.Via()
			gate := hold(p, attachOf(e.Key))
			ctx, cancel := context.WithCancel(bg)
			failed := redistest.Begin(func() error { _, err := m.Attach(ctx, ticket); return err })
			gate.Wait(e)
			cancel()
			e.WantErr(<-failed, holdfast.ErrUnavailable, context.Canceled)
			e.Eventually("nothing is under way", func() bool { return len(slices.Collect(m.Locks())) == 0 })
			gate.Release()
			e.Busy(e.Lock(m).TryLock)
			if h := e.holder(true); h.Owner != owner || h.TTL > longStay {
				e.Errorf("after that: %+v, want %s", h, owner)
			}
			e.MustUnlock(e.mustAttach(e.Manager(), ticket))
			e.Free()
		}
	},

	// The answer comes when the lease is over, or the Manager is closed: nothing is handed out.
	"AttachThatIsTooLateGoesBack": func(e *handed) {
		giver := e.Manager()
		ticket := e.mustDetach(e.MustLock(e.ours(giver)), longStay)
		m, p := e.Via()
		gate := p.HoldFirstReply(attachOf(e.Key))
		time.AfterFunc(90*time.Millisecond, gate.Release)
		_, err := m.Attach(bg, ticket, holdfast.WithFixedLease(50*time.Millisecond))
		e.WantErr(err, holdfast.ErrUnavailable)

		ticket = e.mustDetach(e.MustLock(e.ours(giver)), longStay)
		m, p = e.Via()
		gate = p.HoldFirstReply(attachOf(e.Key))
		failed := redistest.Begin(func() error { _, err := m.Attach(bg, ticket); return err })
		gate.Wait(e)
		time.AfterFunc(50*time.Millisecond, gate.Release)
		if err := m.Close(bg); err != nil && !e.excused(err) {
			e.Errorf("Close: %v", err)
		}
		e.WantErr(<-failed, holdfast.ErrClosed)
		e.MustUnlock(e.mustAttach(giver, ticket))
		_, err = m.Attach(bg, ticket)
		e.WantErr(err, holdfast.ErrClosed)
		e.Free()
	},
}

var (
	ticketFaultScenarios   = forWriters(handedFaultScenarios)
	rwTicketFaultScenarios = forReaders(handedFaultScenarios, nil)
)
