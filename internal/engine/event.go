package engine

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/renewal"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// event is a moment of a lock, with what its shell makes of it. Most events of a local hand-off are on the stack, and have no room
// for effects: a pool would take a tenth of the hand-off.
type event struct {
	lock.Moment
	gone  Ended         // of Moment.Gone
	call  *command.Call // a request of the shell's own; nil: none
	after *afterwards   // nil: nothing
}

// afterwards is what few events leave to be done when no lock is held.
type afterwards struct {
	unsent []*command.Call // requests that the executor did not take, because it has been stopped
	ends   []Ended         // of the leases of Effects.Ends, in their order
	wanted []*Lease        // of several locks: another owner wants one of them
	oldest *lock.Hold      // of another lock, which is to be dismissed, because too many linger; nil: none
}

// afterwards returns that of the event, to add to it.
func (ev *event) afterwards() *afterwards {
	if ev.after == nil {
		ev.after = new(afterwards)
	}
	return ev.after
}

// pooled is an event whose memory is used again: the compiler does not see that what it is passed to keeps nothing of it.
type pooled struct {
	event
	said lock.Reply // to a request, whose end the event is
}

var (
	events = sync.Pool{New: func() any { return new(pooled) }}
	rooms  = sync.Pool{New: func() any { return new(lock.Effects) }} // for the effects of one event at a time
)

// do is an event of an entry.
func (e *entry) do(step func(m *lock.Moment)) {
	p := events.Get().(*pooled)
	p.Begin(&e.engine.world, &e.engine.Settings)
	e.mu.Lock()
	step(&p.Moment)
	e.engine.end(&p.event, e)
	p.drop()
}

// drop ends the use of the memory.
func (p *pooled) drop() {
	*p = pooled{}
	events.Put(p)
}

// end ends an event that took the mutexes of these entries, mostly of one.
func (eng *Engine) end(ev *event, entries ...*entry) {
	x := ev.Room
	if x != nil {
		eng.performOrdered(ev, x)
	}
	if l := ev.Gone; l != nil {
		ev.gone = (*Lease)(l).closeLocked()
	}
	for w := ev.Told; w != nil; w = w.Next {
		w.Shell.(*waiter).settleLocked(&ev.Moment)
	}
	var heard []*entry
	for _, e := range entries {
		if x != nil && x.Saw != 0 {
			eng.tokens.saw(e.mapped(), x.Saw)
		}
		if e.sync(ev) {
			heard = append(heard, e)
		}
		e.mu.Unlock()
	}
	eng.perform(ev)
	for _, e := range heard {
		e.Subscribed()
	}
}

// performOrdered does what a later event must not overtake, with the mutex still held. It reports to Close before a request can
// be answered, and the begin of one before the end of another. Rejected: a queue of effects for each entry, performed without the
// mutex. Handing it on would need a second lock. What a step must learn at once stays a call of lock.World in it.
func (eng *Engine) performOrdered(ev *event, x *lock.Effects) {
	if x.Report != (lock.CloseReport{}) {
		eng.report(x.Report)
	}
	if x.Wrote {
		eng.Subscriber.Wrote()
	}
	if x.Unrelied > 0 {
		eng.inbox.relying.Add(-int64(x.Unrelied))
	}
	for i := range x.Sends {
		eng.submit(ev, &eng.sentFor(&x.Sends[i]).call)
	}
	if ev.call != nil {
		eng.submit(ev, ev.call)
	}
	for _, l := range x.Limits {
		syncLimit(l, ev.Now())
	}
	for _, r := range x.Pauses {
		eng.syncPause(r, ev.Now())
	}
	for _, a := range x.Answers {
		a.To.(chan *lock.Verdict) <- a.Verdict // buffered for it
	}
	for _, l := range x.Wanted {
		if whole := (*Lease)(l).wantedLocked(); whole != nil {
			after := ev.afterwards()
			after.wanted = append(after.wanted, whole)
		}
	}
	for i := range x.Ends {
		for _, l := range x.Ends[i].Leases {
			after := ev.afterwards()
			after.ends = append(after.ends, (*Lease)(l).closeLocked())
		}
	}
	if c := &x.Counts; *c != (lock.Counts{}) {
		eng.Stats.Troubles.Add(c.Troubles)
		eng.Stats.Polls.Add(c.Polls)
	}
}

// submit sends a request.
func (eng *Engine) submit(ev *event, c *command.Call) {
	if !eng.Executor.Submit(ev.Now(), c) {
		after := ev.afterwards()
		after.unsent = append(after.unsent, c)
	}
}

// perform does the rest, when no lock is held: code of the user may run.
func (eng *Engine) perform(ev *event) {
	var async []*waiter // no caller that waits is kept from its outcome by code of another one
	for w := ev.Told; w != nil; {
		next := w.Next // its caller may park it again when it knows
		if x := w.Shell.(*waiter); x.async == nil {
			x.ready <- struct{}{} // there is room
		} else {
			async = append(async, x)
		}
		w = next
	}
	for _, w := range async {
		w.tell()
	}
	if ev.Gone != nil {
		ev.gone.Announce(eng)
	}
	after := ev.after
	if x := ev.Room; x != nil {
		ends := 0
		for i := range x.Ends {
			n := len(x.Ends[i].Leases)
			var leases []Ended
			if n > 0 {
				leases = after.ends[ends : ends+n]
			}
			eng.announce(&x.Ends[i], leases)
			ends += n
		}
		if w := x.Waits; w.Lock != nil && command.Refuses(w.Cause) && eng.life.Err() == nil {
			name := entryOf(w.Lock).name()
			eng.Journal.Refused(name, eng.explain(name, lock.Because(lock.Unavailable, w.Cause)))
		}
		for _, f := range x.GaveUp {
			if eng.life.Err() == nil { // else Close has said so
				name := nameOf(f.Lock, f.Lease)
				eng.Journal.GaveUp(name, eng.explain(name, f.Verdict))
			}
		}
		*x = lock.Effects{
			Sends: emptied(x.Sends), Limits: emptied(x.Limits), Pauses: emptied(x.Pauses), Answers: emptied(x.Answers),
			Wanted: emptied(x.Wanted), Ends: emptied(x.Ends), GaveUp: emptied(x.GaveUp),
		}
		rooms.Put(x)
	}
	if after == nil {
		return
	}
	for _, whole := range after.wanted {
		whole.mu().Lock()
		whole.wantedLocked()
		whole.mu().Unlock()
	}
	if h := after.oldest; h != nil { // an event of its own
		e := entryOf(h.Lock)
		e.do(func(m *lock.Moment) { e.lock.Dismiss(m, h) })
	}
	for _, c := range after.unsent { // likewise, as an answer is
		c.Handler.Replied(c, stoppedReply)
	}
}

// emptied keeps the memory of few.
func emptied[T any](s []T) []T {
	const many = 16
	if cap(s) > many {
		return nil
	}
	clear(s)
	return s[:0]
}

// stoppedReply is the end of a request that the executor did not take, because Close has stopped it.
var stoppedReply = command.Reply{Outcome: lock.Unsent, Err: lock.Closed}

// announce tells of the end of leases.
func (eng *Engine) announce(d *lock.Ended, leases []Ended) {
	switch d.How {
	case lock.Lost:
		eng.Telemetry.Lost(string(d.Reason))
		eng.Stats.Lost.Add(1)
		eng.announceAll(leases)
		eng.Journal.Lost(nameOf(d.Lock, d.Lease), string(d.Reason))
	case lock.LimitReached:
		eng.Stats.Lost.Add(1)
		eng.announceAll(leases)
		eng.Journal.MaxHold(nameOf(d.Lock, d.Lease), d.Limit)
	case lock.ByClose:
		eng.announceAll(leases)
	case lock.GivenBack:
		for _, e := range leases {
			e.tell()
		}
	}
}

// nameOf is what the log calls a lock: by a lease, if there is one.
func nameOf(l *lock.Lock, named *lock.Lease) string {
	if named != nil {
		return named.Name()
	}
	return entryOf(l).name()
}

// world is what the events of a lock may ask, and what requests say of the process: see lock.World and protocol.Known. Some of it is
// the inbox's, and what tokenMarks know.
type world struct {
	eng *Engine
	*inbox
	*tokenMarks
}

func (w *world) Roughly() time.Duration { return w.eng.coarseNow() }

func (w *world) Number(n int) uint64 { return w.eng.holds.Add(uint64(n)) - uint64(n) + 1 }

func (w *world) Silence() error { return w.eng.Executor.Silence() }

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

func (w *world) Schedule(h *lock.Hold, p renewal.Plan) (deadline time.Time) {
	if p.What == renewal.Renew && !h.IsStanding() {
		w.eng.warm.Do(func() { w.eng.Executor.Warm(w.eng.life) })
	}
	return w.eng.scheduler.Change(&h.Item, p)
}

func (w *world) Scheduled(h *lock.Hold) bool { return w.eng.scheduler.Has(&h.Item) }
