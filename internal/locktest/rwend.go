package locktest

import (
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

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
		e.Passes(stays, "the writer", waiting)
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

// rwCrowdScenarios are about readers whose processes have died together, and whose rights end one after the other.
var rwCrowdScenarios = map[string]func(*Env){
	// Readers come in beside the dead, and leave; neither makes the writer wait for longer or for less.
	"ReadersBesideTheDeadChangeNothing": func(e *Env) {
		end := e.deadReaders(60, lease)
		m := e.Manager(holdfast.WithFixedLease(time.Minute))
		for range 3 {
			e.MustUnlock(e.MustRLock(e.RW(m)))
			e.Busy(e.RW(e.Manager()).TryLock)
		}
		last := e.MustRLock(e.RW(m))
		got := e.InQueue(1, e.RW(e.Manager()))
		e.MustUnlock(last)
		l := e.Soon("the writer comes in", got)
		e.cameAt(end)
		e.MustUnlock(l)
		e.srv.RequireTTLs(e)
	},
}

// deadReaders puts n readers into the lock, half of them Redisson's. The rights of a third have ended; those of the
// others end one after the other, the last of them at the time that is returned.
func (e *Env) deadReaders(n int, last time.Duration) (end time.Time) {
	e.Helper()
	fields := []any{"mode", "read"}
	begun := time.Now()
	_, err := e.Server().Admin().TxPipelined(bg, func(p redis.Pipeliner) error {
		for i := range n {
			id := fmt.Sprintf("hf-11111111-2222-4333-8444-%012d:%d", i%4, i+1)
			if i%2 == 0 {
				id = fmt.Sprintf("0c2d0a52-7b0c-4f0e-9d3b-3f7a5f1c6e11:%d", i+1)
			}
			fields = append(fields, id, 1)
			if left := last * time.Duration(n-i) / time.Duration(n); i < 2*n/3 { // the first is the last to end
				p.Set(bg, "{"+e.Key+"}:"+id+":rwlock_timeout:1", 1, left)
			}
		}
		p.HSet(bg, e.Key, fields...)
		p.PExpire(bg, e.Key, last)
		return nil
	})
	redistest.Must(e, err)
	return begun.Add(last)
}

// cameAt checks that a writer has come in at end: not before, and not only when something else has ended.
func (e *Env) cameAt(end time.Time) {
	e.Helper()
	const late = 8 * time.Second
	switch after := time.Since(end); {
	case after < 0:
		e.Errorf("a writer came in %v before the last right ended", -after)
	case after > late:
		e.Errorf("a writer came in %v after the last right had ended", after)
	}
}
