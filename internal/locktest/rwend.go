package locktest

import (
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// rwEndScenarios are about a writer that waits for two readers. Redis keeps the lock for as long as the longest right lasts, so it ends
// earlier once the reader with that one has left.
var rwEndScenarios = map[string]func(*Env){
	// Redis has told the writer of the late end. When the right that lasts so long is given back it learns that the other one ends earlier, and
	// needs one request, at that end.
	"WriterLearnsOfAnEarlierEnd": func(e *Env) {
		ends, leaves := e.unevenReaders()
		m := e.Manager(byMessage...)
		waiting := e.standby(e.RW(m))
		n := m.Stats().Commands
		e.MustUnlock(leaves)
		e.comesAtTheEndOf(ends, waiting)
		if n = m.Stats().Commands - n; n != 2 && !e.troubled() {
			e.Errorf("the writer has sent %d commands, want its request and its release", n)
		}
	},

	// The writer hears the message before the answer to a request of its own, which names the late end.
	"WriterLearnsOfAnEarlierEndWhileItAsks": func(e *Env) {
		ends, leaves := e.unevenReaders()
		m, p := e.Via(byMessage...)
		waiting := e.standby(e.RW(m))
		answer := p.HoldReply(acquireOf(e.Key))
		e.tellTurn()
		answer.Wait(e)
		heard := m.Stats().Wakeups
		e.MustUnlock(leaves)
		e.Eventually("the message is heard", func() bool { return m.Stats().Wakeups > heard })
		answer.Release()
		e.comesAtTheEndOf(ends, waiting)
	},

	// Readers that come together end together: the writer is told nothing of a difference of less than a tenth of a second.
	"WriterIsNotToldOfALittle": func(e *Env) {
		stays := e.MustRLock(e.RW(e.Manager(holdfast.WithFixedLease(time.Hour))))
		first := e.Rights()[0]
		leaves := e.MustRLock(e.RW(e.Manager(holdfast.WithFixedLease(time.Hour))))
		waiting := e.standby(e.RW(e.Manager(byMessage...)))
		const sooner = `return redis.call("pexpire", KEYS[1], redis.call("pttl", KEYS[2]) - 90)`
		redistest.Must(e, e.srv.Admin().Eval(bg, sooner, []string{first, e.Key}).Err())
		mon := e.srv.Monitor(e)
		e.MustUnlock(leaves)
		e.caughtUp(mon)
		redistest.Want(e, countLines(mon, `"publish" "holdfast_inbox:`), 0, "%d messages")
		e.MustUnlock(stays)
		e.MustUnlock(e.Soon("the writer", waiting))
	},
}

// unevenReaders has a reader that ends in a while, and is never released, and one whose right is far longer.
func (e *Env) unevenReaders() (ends, leaves *holdfast.Lease) {
	e.Helper()
	ends = e.MustRLock(e.RW(e.Manager(), holdfast.WithFixedLease(lease)))
	return ends, e.MustRLock(e.RW(e.Manager(), holdfast.WithFixedLease(time.Hour)))
}

// comesAtTheEndOf checks that a writer comes in when the right of that reader ends.
func (e *Env) comesAtTheEndOf(reader *holdfast.Lease, waiting <-chan *holdfast.Lease) {
	e.Helper()
	l := e.Soon("the writer", waiting)
	if late := time.Since(reader.Deadline()); late < 0 || late > e.bound(prompt) {
		e.Errorf("the writer came in %v after the reader's end", late)
	}
	e.MustUnlock(l)
	e.WantErr(reader.Unlock(bg), holdfast.ErrLeaseLost)
}
