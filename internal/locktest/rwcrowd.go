package locktest

import (
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// rwCrowdScenarios are about readers whose processes have died together, and whose rights end one after the other.
var rwCrowdScenarios = map[string]func(*Env){
	// A writer comes in when the last right ends, and not before.
	"WriterWaitsForTheLastOfTheDead": func(e *Env) {
		end := e.deadReaders(60, 1500*time.Millisecond)
		e.Busy(e.RW(e.Manager()).TryLock)
		l := e.MustLock(e.RW(e.Manager()))
		e.cameAt(end)
		e.MustUnlock(l)
		e.srv.RequireTTLs(e)
	},

	// Readers come in beside the dead, and leave; neither makes the writer wait for longer or for less.
	"ReadersBesideTheDeadChangeNothing": func(e *Env) {
		end := e.deadReaders(60, lease)
		m := e.Manager(holdfast.WithFixedLease(time.Minute))
		for range 3 {
			e.MustUnlock(e.MustRLock(e.RW(m)))
			e.Busy(e.RW(e.Manager()).TryLock)
		}
		last := e.MustRLock(e.RW(m))
		got := e.Locking(e.RW(e.Manager()))
		e.Queued(1)
		e.MustUnlock(last)
		l := e.Soon("the writer comes in", got)
		e.cameAt(end)
		e.MustUnlock(l)
		e.srv.RequireTTLs(e)
	},

	// A reader that outlives the dead keeps the writer out, and lets it in when it leaves.
	"ReaderOutlivesTheDead": func(e *Env) {
		end := e.deadReaders(60, 500*time.Millisecond)
		r := e.MustRLock(e.RW(e.Manager(holdfast.WithFixedLease(time.Minute))))
		got := e.Locking(e.RW(e.Manager()))
		e.Queued(1)
		e.Eventually("all of the dead have ended", func() bool { return time.Now().After(end) && len(e.Rights()) == 1 })
		e.Busy(e.RW(e.Manager()).TryLock)
		e.MustUnlock(r)
		e.MustUnlock(e.Soon("the writer comes in", got))
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
