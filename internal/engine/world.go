package engine

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// world is what the events of a lock may ask, and what requests say of the process: see lock.World and protocol.Known. Some of it is
// the inbox's, and what tokenMarks know.
type world struct {
	eng *Engine
	*inbox
	*tokenMarks
}

func (w *world) Now() time.Time { return time.Now() }

func (w *world) Roughly() time.Duration { return w.eng.coarseNow() }

func (w *world) Chance(n int64) int64 { return w.eng.Chance(n) }

func (w *world) Number(n int) uint64 { return w.eng.holds.Add(uint64(n)) - uint64(n) + 1 }

func (w *world) Silence() error { return w.eng.Executor.Silence() }

func (w *world) Facts() lock.Facts {
	f := lock.Facts{Inbox: lock.Unheard, Session: w.session(), RoundTrip: w.eng.Executor.RoundTrip(), First: w.eng.Executor.FirstWithin()}
	switch s := w.eng.Subscriber; {
	case s.Live(w.channel):
		f.Inbox = lock.Heard
	case s.Denied(w.channel):
		f.Inbox = lock.InboxDenied
	}
	return f
}

func (w *world) Room() *lock.Effects { return rooms.Get().(*lock.Effects) }

// OwnListeners counts what the server knows that a script runs on: a node of a cluster knows only subscriptions made there,
// which plain ones need not be.
func (w *world) OwnListeners(keys *wire.Keys) int64 {
	s := w.eng.Subscriber
	if (w.eng.Process.Counted || s.Sharded()) && s.Live(keys.Channel()) {
		return 1
	}
	return 0
}

func (w *world) Schedule(p lock.Plan) (deadline time.Time, scheduled bool) {
	s, item := w.eng.scheduler, &p.Hold.Item
	switch p.What {
	case lock.PlanDrop:
		s.Remove(item)
	case lock.PlanEnd:
		s.AddEnd(item, p.At)
	case lock.PlanFixed:
		s.Add(item, p.At, p.Set, p.TTL, false)
	case lock.PlanRenew:
		s.Add(item, p.At, p.Set, p.TTL, true)
		if !p.Hold.IsStanding() {
			w.eng.warm.Do(func() { w.eng.Executor.Warm(w.eng.life) })
		}
	case lock.PlanKept:
		return s.Confirm(item, p.At, p.Set, p.TTL)
	case lock.PlanRetry:
		s.Retry(item)
	}
	return deadline, scheduled
}

func (w *world) Scheduled(h *lock.Hold) bool { return w.eng.scheduler.Has(&h.Item) }
