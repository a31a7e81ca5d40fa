package engine

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// demand is what is known of other processes that wait for the lock.
type demand uint8

const (
	demandUnknown demand = iota
	demandAsked          // the question is under way
	demandKnown          // one waits
)

// sliceOver reports whether the process has had the lock for a slice.
func (h *hold) sliceOver(now time.Time) bool {
	eng := h.entry.engine
	slice := eng.slice
	if h.kind == ReadKind { // readers share what they do not pass on
		slice = eng.readSlice
	}
	return now.Sub(eng.Epoch)-h.tenure >= slice
}

// askDemandLocked finds out, once per slice, whether another process waits for a lock that this one passes among
// its callers. Messages would be sooner, but Go can read them tens of milliseconds late while its goroutines are
// busy. One question per slice costs nothing in comparison with the grants in between.
func (e *entry) askDemandLocked(m *moment, h *hold) {
	now := m.now()
	if h.demand != demandUnknown || !h.sliceOver(now) {
		return
	}
	h.demand = demandAsked
	q := &demandQuestion{hold: h}
	m.send(&command.Call{
		Script:   protocol.Demand,
		Args:     protocol.Demand.Args(1, h.keys.Queue, e.engine.Publish, h.keys.Channel),
		Handler:  q,
		Patience: m.askPatience(),
	})
}

// demandQuestion is the handler of that question.
type demandQuestion struct{ hold *hold }

// Replied is called by the executor.
func (q *demandQuestion) Replied(_ *command.Call, r command.Reply) {
	h := q.hold
	e := h.entry
	var waiting, listeners int64
	if n, ok := r.Value.([]any); ok && len(n) == 2 {
		waiting, _ = n[0].(int64)
		listeners, _ = n[1].(int64)
	}
	m := e.moment()
	e.mu.Lock()
	defer e.unlock(&m)
	if waiting > 0 || listeners > m.ownListeners(e) {
		h.demand = demandKnown
	} else {
		h.demand = demandUnknown
		h.tenure = m.age() // the next slice
	}
}

// Overdue has the question asked again, over another connection: this one may be dead.
func (q *demandQuestion) Overdue(*command.Call) {
	e := q.hold.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	if q.hold.demand == demandAsked {
		q.hold.demand = demandUnknown
	}
}

// Stranded is called by the executor when the connection is dead.
func (q *demandQuestion) Stranded(c *command.Call) { q.Overdue(c) }
