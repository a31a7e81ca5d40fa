package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/judge"
	"github.com/holdfast-go/holdfast/internal/vredis"
)

// Bounds. A message wakes a waiter within milliseconds and a poll only after a second, so the first tells them apart on a busy
// machine. The second is a poll, a lease, a new connection and the longest fault.
const (
	wakeBound  = 500 * time.Millisecond
	stuckBound = 5 * time.Second
	toldBound  = 2 * stallBound // from a deadline to Done: a timer; up to half of it is no stall yet
)

// trial is a judge's world: it tells the judge what happened in a run, in the order of time.
type trial struct {
	*judge.Judge
	h      *History
	at     int64 // now
	events []event
	redis  *vredis.Server // has what the run's server had
	locks  map[string]*lock
	procs  []*party            // by ID
	claims map[id]*judge.Claim // by the acquire that brought them
	tokens map[string]uint64   // of owners
	report *Report
}

// id is that of an operation.
type id struct {
	proc int
	op   int64
}

// event is what happens at a time.
type event struct {
	at int64
	do func()
}

// lock is one of the run's, as the judge sees it.
type lock struct {
	judge.Lock
	kind     *Kind                    // nil: a private lock of a process
	ends     time.Duration            // when the first of its holds ends by itself; 0: none does
	maybe    []time.Duration          // until when each of Promised counts
	used     map[string]time.Duration // owner ids that callers have had leases of, and when the last of these was over
	given    []string                 // of these, those that are gone
	returned map[int]int64            // by process, when an acquire of it returned
}

// party is a process, as the judge sees it.
type party struct {
	*Process
	t *trial
}

func (p *party) String() string { return fmt.Sprintf("client %d", p.ID) }

func (p *party) Owns(_ *judge.Lock, id string) bool {
	return p.Prefix != "" && strings.HasPrefix(id, p.Prefix+":")
}

// Air: faults come one after the other, and hit what they are said to hit and its surroundings. So while they last all is rough, and bounds are
// long, but there is always enough of it that works.
func (p *party) Air(l *judge.Lock) judge.Air {
	calm, since := p.t.calm(l.Name)
	return judge.Air{Healthy: true, Calm: calm, Since: since}
}

// calm reports whether nothing is wrong with a lock, and since when: it is before the first fault or well after the last, and not near a
// moment at which the machine was too busy.
func (t *trial) calm(name string) (calm bool, since time.Duration) {
	wait, last := int64(recovery(ttlOf(name))), int64(0)
	rough := func(from, to int64) bool {
		if from > t.at {
			return false
		}
		if to != never {
			to += wait
		}
		last = max(last, to)
		return to > t.at
	}
	if rough(t.h.Faulty, t.h.Healed) {
		return false, 0
	}
	for _, f := range t.h.Stalls {
		if rough(f.Start, f.End) {
			return false, 0
		}
	}
	return true, max(0, t.since(last))
}

// since is the judge's time.
func (t *trial) since(at int64) time.Duration {
	if at == never {
		return time.Duration(never)
	}
	return time.Duration(at - t.h.Start)
}

func (t *trial) Now() time.Duration { return t.since(t.at) }

func (t *trial) Of(_ *judge.Lock, id string) judge.Process {
	for _, p := range t.procs {
		if p.Owns(nil, id) && p.Died > t.at {
			return p
		}
	}
	return nil
}

// Wakes: a lock is free for certain, and a call of Lock waits for it.
func (t *trial) Wakes(l *judge.Lock, x *judge.Wait) judge.Waking {
	calm, since := t.calm(l.Name)
	w := judge.Waking{Free: !l.Held() && len(l.Promised) == 0 && t.at < t.h.Quiesced, From: since, Bound: t.Outage(l)}
	if calm {
		w.Bound = wakeBound
	}
	return w
}

func (t *trial) Prompt(*judge.Lock) time.Duration { return wakeBound }

// Tidy is how long Redis may keep a hold without a lease: a request may be repeated and a tombstone left, but nothing is renewed, so that the TTL
// ends it.
func (t *trial) Tidy(l *judge.Lock) time.Duration { return ttlOf(l.Name) + 2*time.Second }

func (t *trial) Outage(l *judge.Lock) time.Duration { return stuckBound + ttlOf(l.Name) }

func (t *trial) Lingers(p judge.Process) time.Duration { return p.(*party).Linger }

// Recheck is not needed: what lasts ends with an event of its lock, before which the judge looks.
func (t *trial) Recheck(time.Duration) {}

func (t *trial) Broken(judge.Violation) {}

// add has something happen to a lock at a time.
func (t *trial) add(at int64, l *lock, do func()) {
	t.events = append(t.events, event{at, func() {
		t.Look(&l.Lock)
		do()
		t.Look(&l.Lock)
	}})
}

// all has something happen to all locks at a time.
func (t *trial) all(at int64, do func(*lock)) {
	t.events = append(t.events, event{at, func() {
		for _, l := range t.locks {
			t.Look(&l.Lock)
			do(l)
		}
	}})
}

// Judge judges a run.
func Judge(h *History, residue Residue) *Report {
	begin := time.Now()
	t := &trial{h: h, locks: map[string]*lock{}, claims: map[id]*judge.Claim{}, tokens: map[string]uint64{}, report: &Report{History: h, Residue: residue}}
	t.Judge = judge.New(t)
	t.redis = vredis.New(vredis.Options{Now: func() time.Time { return time.Unix(0, t.at+h.Wall) }})
	for _, p := range h.Processes {
		t.procs = append(t.procs, &party{p, t})
	}
	for _, w := range transactions(h.Writes, h.Ticks) {
		t.events = append(t.events, event{max(w.lo, h.Start), func() { t.write(w) }})
	}
	t.operations()
	for _, p := range t.procs {
		if p.Died != never {
			t.all(p.Died, func(l *lock) { l.Forget(p) })
		}
	}
	for _, f := range h.Faults {
		if f.Name != "" { // an administrator has had a hand in it
			span := t.since(f.End) + 3*ttlOf(f.Name)/2 + time.Second
			l := t.lock(f.Name)
			t.add(f.Start, l, func() { l.Excused = max(l.Excused, span) })
		}
	}
	for _, at := range append(t.starts(), h.Faulty, h.Quiesced) {
		t.all(at, func(*lock) {}) // what has lasted until then is judged before the bounds change
	}
	slices.SortStableFunc(t.events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	for _, e := range t.events {
		if e.at == never {
			break
		}
		for _, l := range t.locks {
			t.pass(l, e.at)
		}
		t.at = e.at
		e.do()
	}
	t.at = h.End
	t.leftovers(residue)
	t.report.Violations = t.Found
	t.report.Judging = time.Since(begin)
	return t.report
}

// starts are when stalls began.
func (t *trial) starts() (all []int64) {
	for _, f := range t.h.Stalls {
		all = append(all, f.Start)
	}
	return all
}

// pass has the holds of a lock end whose time is over, and what may have been so is over.
func (t *trial) pass(l *lock, to int64) {
	for {
		next := l.ends
		for _, until := range l.maybe {
			if next == 0 || until < next {
				next = until
			}
		}
		if next == 0 || next > t.since(to) {
			return
		}
		t.at = max(t.at, t.h.Start+int64(next))
		t.Look(&l.Lock)
		for i := len(l.maybe) - 1; i >= 0; i-- {
			if l.maybe[i] <= next {
				l.maybe, l.Promised = slices.Delete(l.maybe, i, i+1), slices.Delete(l.Promised, i, i+1)
			}
		}
		if l.ends != 0 && l.ends <= next {
			t.load(l, t.at)
			if l.ends != 0 && l.ends <= next { // Redis counts in milliseconds
				l.ends = next + time.Millisecond
			}
		}
		t.Look(&l.Lock)
	}
}

// leftovers judges what was found after all callers had stopped, and after all processes had gone.
func (t *trial) leftovers(res Residue) {
	if all := slices.Concat(res.Belongings, res.Keys); len(all) > 0 {
		t.Fail(nil, "left behind", "%q", all)
	}
	if len(res.Subscriptions)+res.Connections > 0 {
		t.Fail(nil, "connections", "%q, %d connections", res.Subscriptions, res.Connections)
	}
	for _, g := range res.Goroutines {
		t.Fail(nil, "goroutines", "%s", g)
	}
	if res.Locks > 0 {
		t.Fail(nil, "local locks", "%d locks, holds or waiters are still known", res.Locks)
	}
	if res.Probe > t.recovery("") {
		t.Fail(nil, "not free in the end", "a fresh client waited %v for a lock", res.Probe)
	}
	for _, name := range res.ProbeFailed {
		t.Fail(nil, "not free in the end", "%s: a fresh client did not get it", name)
	}
}

// recovery is the longest that a caller may wait for a lock after healing, on a machine that may be
// too busy: the lock comes into reach, perhaps at a poll, and the caller takes it within wakeBound.
func (t *trial) recovery(name string) time.Duration {
	bound := recovery(ttlOf(name)) + wakeBound
	for _, f := range t.h.Stalls {
		if f.End > t.h.Healed {
			bound += time.Duration(f.End - f.Start)
		}
	}
	return bound
}
