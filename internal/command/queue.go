package command

import (
	"slices"
	"time"
)

// queue is a FIFO of calls in one slice. Batches are cut from its front and copied
// out, so the slice is reused and a burst leaves one backing array behind.
type queue struct {
	calls []*Call
	first int // index of the front
}

func (q *queue) len() int { return len(q.calls) - q.first }

func (q *queue) push(c *Call) { q.calls = append(q.calls, c) }

// takeInto moves up to n calls from the front to the end of batch.
func (q *queue) takeInto(batch []*Call, n int) []*Call {
	n = min(n, q.len())
	front := q.calls[q.first : q.first+n]
	batch = append(batch, front...)
	clear(front) // do not keep finished calls alive
	q.first += n
	switch {
	case q.first == len(q.calls):
		q.calls, q.first = q.calls[:0], 0
	case q.first > len(q.calls)/2:
		k := copy(q.calls, q.calls[q.first:])
		clear(q.calls[k:])
		q.calls, q.first = q.calls[:k], 0
	}
	return batch
}

// overdue appends the calls that have just become overdue, at now after Executor.epoch, where the lanes before them waited for
// connections until dialed.
func (q *queue) overdue(now, dialed time.Duration, to []*Call) []*Call {
	return appendOverdue(q.calls[q.first:], now, dialed, to)
}

// lapsed takes out the calls that lapse and are overdue, and appends them. Without that, calls that are
// repeated every second would pile up behind a server that is silent.
func (q *queue) lapsed(to []*Call) []*Call {
	q.calls = slices.DeleteFunc(q.calls, func(c *Call) bool {
		lapses := c != nil && c.Lapses && c.overdue // those taken already are nil
		if lapses {
			to = append(to, c)
		}
		return lapses
	})
	return to
}

func appendOverdue(calls []*Call, now, dialed time.Duration, to []*Call) []*Call {
	for _, c := range calls {
		if age := now - c.queued; !c.overdue && age >= c.Patience && (age >= c.Dial || now-dialed >= c.Patience) {
			c.overdue = true
			to = append(to, c)
		}
	}
	return to
}
