package explore

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/judge"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/vredis"
)

// court feeds the judge: what callers have, and what the server has, after each step. It also has the rules of these worlds alone. Its methods that
// package judge asks for say that what must not last does not last for longer than a message takes: the judge looks for that only where time
// has to pass because nothing is on its way.
type court struct {
	*judge.Judge
	w       *World
	at      time.Time        // of the look
	locks   []*judge.Lock    // of each of the plan's
	seen    *vredis.Database // by the latest look
	when    time.Time        // of that
	deleted bool             // another client has deleted a lock
	slow    bool             // an answer took too long
	expired map[string]bool  // owner ids whose TTL has ended
}

func newCourt(w *World) *court {
	j := &court{w: w, at: w.now, expired: map[string]bool{}}
	j.Judge = judge.New(j)
	for n := range w.plan.Locks {
		of := &w.plan.Locks[n]
		l := judge.NewLock(of.Name, of.Name, of.Kind == lock.WriteKind, of.Permits)
		l.Shell, l.Loose = of, of.Kind != lock.FairKind && of.Kind != lock.SemaphoreKind
		j.locks = append(j.locks, l)
	}
	return j
}

// fails takes note of a promise that was broken.
func (j *court) fails(rule, format string, args ...any) { j.Fail(nil, rule, format, args...) }

// broken is the first that was; "": none was.
func (j *court) broken() string {
	if len(j.Found) == 0 {
		return ""
	}
	return j.Found[0].Rule + ": " + j.Found[0].Text
}

// promptly is longer than anything takes for which time does not have to pass.
const promptly = 5 * time.Millisecond

func (j *court) Now() time.Duration                   { return j.time(j.at) }
func (j *court) Prompt(*judge.Lock) time.Duration     { return promptly }
func (j *court) Tidy(*judge.Lock) time.Duration       { return promptly }
func (j *court) Outage(*judge.Lock) time.Duration     { return promptly }
func (j *court) Lingers(judge.Process) time.Duration  { return time.Hour }
func (j *court) Recheck(time.Duration)                {}
func (j *court) Broken(judge.Violation)               {}
func (j *court) time(t time.Time) time.Duration       { return t.Sub(epoch) + time.Second }
func (p *process) String() string                     { return fmt.Sprintf("process %d", p.id) }
func (p *process) Owns(_ *judge.Lock, id string) bool { return strings.HasPrefix(id, p.says.Owners) }
func (p *process) Air(*judge.Lock) judge.Air {
	return judge.Air{Healthy: p.state == running, Calm: true}
}
func (j *court) Wakes(l *judge.Lock, _ *judge.Wait) judge.Waking {
	free := !l.Held()
	if l.Permits > 0 {
		free = j.suffices(l)
	}
	return judge.Waking{Free: free, Bound: promptly}
}

func (j *court) Of(l *judge.Lock, id string) judge.Process {
	for _, p := range j.w.procs {
		if p.state != dead && p.Owns(l, id) {
			return p
		}
	}
	return nil
}

// lease is one as the judge sees it.
type lease struct {
	*lock.Lease
	j *court
}

func (l lease) Valid() bool         { return l.Lease.Valid(l.j.at) }
func (l lease) Ends() time.Duration { return l.j.time(l.Deadline()) }

// granted is called with each lease that a caller gets.
func (j *court) granted(c *caller, l *lock.Lease, reentry bool) {
	n, h, p := l.Of().Shell.(int), l.Hold(), c.p()
	x := &judge.Claim{Process: p, Who: fmt.Sprint("caller ", c.id), Owner: fmt.Sprint(p.id, "#", h.Number), Write: !l.Kind().Shared(), Permits: h.Terms.Permits, Locks: j.locks[n : n+1], Lease: lease{l, j}}
	x.Stands = func(id string) bool {
		h := l.Hold() // a downgrade makes another one
		if n := h.Terms.Permits; n > 0 {
			return judge.IsFor(p.owner(h), id)
		}
		return strings.TrimSuffix(id, ":write") == strings.TrimSuffix(p.owner(h), ":write") && (h.Converting() || id == p.owner(h))
	}
	c.claims = append(c.claims, x)
	j.Granted(x)
	switch {
	case !c.Fencing:
	case reentry:
		j.TokenAgain(j.locks[n], x.Who, l.Token(), c.leases[0].Token())
	default:
		j.Token(j.locks[n], x, l.Token())
	}
}

// gives is called when a caller gives up its lease number i.
func (j *court) gives(c *caller, i int) {
	j.Ends(c.claims[i])
	c.claims = slices.Delete(slices.Clone(c.claims), i, i+1)
}

// foreign is a claim of one of Redisson's.
func (j *court) foreign(c *caller) {
	x := &judge.Claim{Process: &process{}, Who: "one of Redisson's", Owner: javaID, Write: c.of().Permits == 0, Permits: min(1, c.of().Permits), Locks: j.locks[c.Locks[0] : c.Locks[0]+1], Until: 1 << 62}
	c.claims = append(c.claims, x)
	j.Granted(x)
}

// look judges the state after a step.
func (j *court) look() {
	w := j.w
	j.at = w.now
	keys := w.db.Keys(w.now)
	if j.seen != w.db || !j.when.Equal(w.now) {
		j.seen, j.when = w.db, w.now
		for n, l := range j.locks {
			before := l.State
			if !l.Loose {
				l.Waits = j.waits(n)
			}
			j.Wrote(l, j.read(l, keys))
			if !l.Loose {
				j.Order(l, &before, "a script")
			}
		}
		for _, k := range keys {
			if k.Expires == 0 && !strings.HasPrefix(k.Name, "redisson_lock_token") && (w.plan.Idle > 0 || w.semaphore(k.Name) == nil) {
				j.fails("ttl", "%s has none", k.Name)
			}
		}
	}
	for _, l := range j.locks {
		j.Exclusion(l)
	}
	for _, p := range w.procs {
		if p.state == dead {
			continue
		}
		for n, l := range p.locks {
			if l != nil {
				j.awake(p, n, l)
			}
		}
		j.clean(p)
	}
	j.all()
}

// read returns what the server has of a lock.
func (j *court) read(l *judge.Lock, keys []vredis.Key) judge.State {
	return judge.Read(func(args ...string) any {
		at := slices.IndexFunc(keys, func(k vredis.Key) bool { return k.Name == args[1] })
		if at < 0 {
			at, keys = len(keys), append(keys[:len(keys):len(keys)], vredis.Key{Name: args[1]})
		}
		return answerOf(&keys[at], args)
	}, l, j.Now(), func(millis int64) time.Duration { return j.time(time.UnixMilli(millis)) })
}

// answerOf is what the server answers to a command that reads a key.
func answerOf(k *vredis.Key, args []string) any {
	switch args[0] {
	case "get":
		return k.Text
	case "pexpiretime":
		return k.Expires
	case "zcard":
		return int64(len(k.List))
	case "zscore":
		if i := slices.Index(k.List, args[2]); i >= 0 {
			return k.Scores[i]
		}
		return nil
	}
	all := make([]any, len(k.List))
	for i, s := range k.List {
		all[i] = s
	}
	return all
}

// asks is called before the server runs a request for places.
func (j *court) asks(f *flight) {
	keys, args := texts(f.args)
	j.at = j.w.now
	for _, l := range j.locks {
		if f.script == protocol.PermitStay {
			for _, id := range judge.PermitsOf(args[1]) {
				l.Stayed[id] = true
			}
		}
		if l.Loose {
			continue
		}
		j.Lapse(l)
		if slices.Contains(keys, l.Name) {
			l.Asks(f.script.Name(), args, false)
		}
	}
}

// idle is called when time has to pass because nothing is on its way. If nothing has gone wrong, no waiter waits for that.
func (j *court) idle(next time.Time) {
	w := j.w
	if w.faults > 0 || j.slow || len(j.expired) > 0 || next.Sub(w.now) <= promptly {
		return
	}
	if !slices.ContainsFunc(w.callers, func(c *caller) bool { return !c.Java && c.phase == waiting }) {
		return
	}
	for n, l := range j.locks {
		l.Waits = j.waits(n)
		j.at = w.now
		j.Look(l)
		j.at = next
		j.Look(l)
		l.ForgetAll("", nil)
	}
}

// waits are the callers that want a lock now.
func (j *court) waits(n int) (all []*judge.Wait) {
	for _, c := range j.w.callers {
		switch {
		case c.Java:
		case c.phase == waiting && c.Locks[min(len(c.leases), len(c.Locks)-1)] == n:
			all = append(all, &judge.Wait{Process: c.p(), Who: fmt.Sprint("caller ", c.id)})
		case c.phase == waiting || c.phase == inside || c.AtLeast > 0: // it may want this one too, or keep it taken
			all = append(all, &judge.Wait{Process: c.p(), Once: true, Unlocks: true})
		}
	}
	return all
}

// memory writes what later judgements depend on, beside the state of the world.
func (j *court) memory(f *printer) {
	f.bool(j.deleted)
	f.bool(j.slow)
	for _, l := range j.locks {
		writer, reader, ids := j.Memory(l)
		f.int(int64(writer))
		f.int(int64(reader))
		f.len(l.Permits)
		f.len(l.Beside)
		for _, h := range l.State.Holders {
			f.bool(l.Stayed[h.ID])
		}
		f.len(len(ids))
		for _, id := range ids {
			f.ids(id)
		}
	}
	f.len(len(j.expired))
	for _, id := range slices.Sorted(maps.Keys(j.expired)) {
		f.ids(id)
	}
}
