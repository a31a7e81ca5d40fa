package sim

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/judge"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// What an operator asks for: what Redis knows about a lock, and that it is freed.

// look is what a server had of a lock when it executed a question about it, or a request to free it.
type look struct {
	at     time.Duration
	script string
	name   string
	info   holdfast.Info // what Inspect says of that
	fields []string      // of the lock's hash
	freed  bool          // by that request
	seat   judge.Seat    // who leads
	values [][2]string   // of valid leases: what their owner ids begin with, and the value
}

// isLock reports whether there is a lock.
func (l *look) isLock() bool {
	return l.info.Kind != holdfast.KindFree && l.info.Kind != holdfast.KindOther
}

// heldBy reports whether an owner id is in it.
func (l *look) heldBy(id string) bool {
	return slices.Contains(l.fields, id) || slices.Contains(l.fields, id+":write")
}

// looksLocked takes note of what s has, before it executes the calls of p that are about that.
func (s *server) looksLocked(p *process, calls []call) {
	for i, c := range calls {
		if c.script == "inspect" || c.script == "force_release" || c.script == "leader" {
			l := s.look(c.keys[0])
			for _, u := range s.touched(c.keys) {
				u.dirty = true
				u.loadLocked()
				l.seat, l.values = u.Seat, u.valuesLocked()
			}
			l.script, calls[i].had = c.script, l
			p.looks = append(slices.DeleteFunc(p.looks, func(l *look) bool { return l.at < s.w.now()-patience }), l)
		}
	}
}

// valuesLocked are those that Redis must have.
func (u *unit) valuesLocked() (all [][2]string) {
	for _, x := range u.Claims {
		if c := x.Shell.(*claim); c.lease != nil && !c.Votes && c.lease.Valid() && u.w.now() > u.Excused {
			all = append(all, [2]string{c.p.prefix[u.s.n], c.plan.on(u.w.plan, u).Value})
		}
	}
	return all
}

// look reads what s has of a lock.
func (s *server) look(name string) *look {
	do := s.redis.Do
	l := &look{at: s.w.now(), name: name, info: holdfast.Info{Name: name, Kind: holdfast.KindOther}}
	if text, _ := do("get", "redisson_lock_token:{"+name+"}").(string); text != "" {
		l.info.Token = uint64(number(text))
	}
	now := float64(s.clock() / 1000)
	for _, q := range [][2]string{{"redisson_lock_queue:{", "redisson_lock_timeout:{"}, {"holdfast_rw_queue:{", "holdfast_rw_timeout:{"}} {
		ids, _ := do("lrange", q[0]+name+"}", "0", "-1").([]any)
		for _, id := range ids {
			if len(l.info.Queue) < 100 { // as many are shown
				l.info.Queue = append(l.info.Queue, holdfast.Waiter{Owner: id.(string), Holdfast: strings.HasPrefix(id.(string), "hf-")})
			}
			if until, timed := do("zscore", q[1]+name+"}", id.(string)).(float64); timed && until <= now {
				l.info.Overdue++
			} else {
				l.info.Waiters++
			}
		}
	}
	fields, isHash := do("hgetall", name).([]any)
	switch {
	case !isHash:
		return l
	case len(fields) == 0:
		l.info.Kind = holdfast.KindFree
		return l
	}
	l.info.Kind, l.info.TTL = holdfast.KindMutex, until(do("pttl", name))
	for i := 0; i < len(fields); i += 2 {
		if fields[i] == "mode" {
			l.info.Kind = holdfast.Kind(fields[i+1].(string))
		} else {
			l.fields = append(l.fields, fields[i].(string))
		}
	}
	for _, id := range l.fields {
		owner, write := strings.CutSuffix(id, ":write")
		h := holdfast.Holder{Owner: owner, Write: write, Holds: int(number(do("hget", name, id))), Holdfast: strings.HasPrefix(owner, "hf-"), Lingers: lingers.MatchString(owner), Detached: wire.IsDetached(owner), Value: wire.ValueOf(owner), TTL: l.info.TTL}
		if l.info.Kind != holdfast.KindMutex && !write {
			h.TTL = until(do("pttl", "{"+name+"}:"+id+":rwlock_timeout:1"))
			if do("exists", "{"+name+"}:"+id+":rwlock_timeout:1") == int64(0) {
				l.info.Ended++
				continue
			}
		}
		l.info.Holders = append(l.info.Holders, h)
	}
	l.info.Held = len(l.info.Holders) > 0
	return l
}

// lingers is what owner ids are of processes that may keep the lock after Unlock.
var lingers = regexp.MustCompile(`^hf-[0-9a-f-]+:0[1-9]`)

// until is what PTTL says.
func until(ms any) time.Duration {
	if n := ms.(int64); n >= 0 {
		return time.Duration(n) * time.Millisecond
	}
	return -1
}

// freesLocked is called when s has executed a request to free u.
func (j *court) freesLocked(u *unit, c call) {
	owner := ""
	if len(c.args) > 4 {
		owner = c.args[4]
	}
	if gone := u.s.redis.Do("exists", u.Name) == int64(0); gone && c.had.isLock() {
		c.had.freed = true
		u.loseLocked()
	}
	switch may := c.had.isLock() && (owner == "" || c.had.heldBy(owner)); {
	case u.s.refusesLocked():
	case c.had.freed && !may:
		j.failLocked("freed another's", "%v: it was to be freed of %s, and %q had it", u, owner, c.had.fields)
	case may && !c.had.freed:
		j.failLocked("not freed", "%v: %q have it still", u, c.had.fields)
	}
}

// looked returns a look of p at a lock since a moment of which is says true; nil: there is none.
func (p *process) looked(since moment, script, name string, is func(*look) bool) *look {
	for _, l := range p.looks {
		if l.at >= since.at && l.script == script && l.name == name && is(l) {
			return l
		}
	}
	return nil
}

// inspect asks what Redis knows, which is what it had at one moment of the call.
func (k *worker) inspect(s *Step, h *handle) holdfast.Info {
	w, began := k.w, k.p.moment()
	ctx, cancel := k.limit(s)
	defer cancel()
	info, err := k.p.managers[0].Inspect(ctx, h.plan.Name)
	k.inTurn()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stats.Calls++
	w.noteLocked("%s inspects %s: %v", k.String(), h.plan.Name, err)
	if k.p.tardyLocked(began, k.p.askLocked()) {
		w.judge.failLocked("late return", "Inspect by %v took %v", k, k.p.ranLocked(began))
	}
	for i := range info.Holders {
		x := &info.Holders[i]
		if x.Idle && !(x.Lingers && strings.HasPrefix(x.Owner, k.p.prefix[0])) {
			w.judge.failLocked("false picture", "Inspect by %v says of %s that it is idle in this process", k, x.Owner)
		}
		x.Idle = false // which Redis does not know
	}
	is := func(l *look) bool { return reflect.DeepEqual(sorted(info), sorted(l.info)) }
	l := k.p.looked(began, "inspect", h.plan.Name, is)
	for i := 0; err == nil && l != nil && i < len(l.values); i++ {
		if v := l.values[i]; !slices.ContainsFunc(info.Holders, func(x holdfast.Holder) bool { return strings.HasPrefix(x.Owner, v[0]) && x.Value == v[1] }) {
			w.judge.failLocked("value", "Inspect by %v says %+v, and %s has %q", k, info.Holders, v[0], v[1])
		}
	}
	if err == nil && !k.p.dead && l == nil {
		had := "nothing that was looked at"
		if l := k.p.looked(began, "inspect", h.plan.Name, func(*look) bool { return true }); l != nil {
			had = fmt.Sprintf("%+v", l.info)
		}
		w.judge.failLocked("false picture", "Inspect by %v says %+v, and Redis had %s", k, info, had)
	}
	return info
}

// sorted has the holders in an order that does not depend on Redis.
func sorted(info holdfast.Info) holdfast.Info {
	info.Holders = slices.Clone(info.Holders)
	slices.SortFunc(info.Holders, func(a, b holdfast.Holder) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return info
}

// force frees a lock, of any holder or of one that Inspect has shown.
func (k *worker) force(s *Step, h *handle) {
	call, owner := "ForceUnlock", ""
	if s.Way == ByForceOf {
		call, owner = "ForceUnlockOf", "hf-none:1"
		if holders := k.inspect(s, h).Holders; len(holders) > 0 {
			owner = holders[0].Owner
		}
		k.pause(s.Hold) // another owner may have it by then
	}
	w, began := k.w, k.p.moment()
	ctx, cancel := k.limit(s)
	defer cancel()
	var freed bool
	var err error
	if owner == "" {
		freed, err = k.p.managers[0].ForceUnlock(ctx, h.plan.Name)
	} else {
		freed, err = k.p.managers[0].ForceUnlockOf(ctx, h.plan.Name, owner)
	}
	k.inTurn()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stats.Calls++
	w.noteLocked("%s: %s of %s %s: %v, %v", k.String(), call, h.plan.Name, owner, freed, err)
	if k.p.tardyLocked(began, 2*k.p.askLocked()) {
		w.judge.failLocked("late return", "%s by %v took %v", call, k, k.p.ranLocked(began))
	}
	so := func(l *look) bool { return l.freed == freed && l.info.Kind != holdfast.KindOther }
	if errors.Is(err, holdfast.ErrWrongKind) {
		so, err = func(l *look) bool { return l.info.Kind == holdfast.KindOther }, nil
	}
	if err == nil && !k.p.dead && k.p.looked(began, "force_release", h.plan.Name, so) == nil {
		w.judge.failLocked("false picture", "%s by %v says %v, which is not what Redis did", call, k, freed)
	}
	if freed {
		for _, u := range h.units {
			if u.s == w.servers[0] {
				u.forcer, u.forced = k.p, w.now()
			}
		}
	}
}

// toldLocked finds leases that a process takes for held although Redis has lost them: it learns that from its next renewal, or at once if it has freed
// the lock itself.
func (j *court) toldLocked(u *unit) {
	seen := map[string]bool{}
	for _, x := range u.Claims {
		c := x.Shell.(*claim)
		downgraded := c.nested && u.kind == RW && !c.Write // while the answer to that is awaited, it is not renewed
		if c.lease == nil || c.Votes || c.p.closed || c.lease.Err() != nil || downgraded {
			continue
		}
		what, from := "untold "+c.Who, max(c.p.trouble, u.s.trouble)
		seen[c.Who] = true
		bound := c.plan.lease(u.w.plan, u)/3 + u.w.trips(12)
		switch {
		case u.forcer == c.p && c.Granted < u.forced:
			from, bound = max(from, u.forced), u.w.trips(12)
		case c.plan.fixed(u.w.plan):
			continue
		}
		gone := u.Uncovered(x, 0) != "" && c.p.calmLocked(u.s)
		if d := j.Lasts(&u.Lock, what, gone, from, bound); d > bound {
			j.failLocked("not told", "%v: %s has lost it for %v, and its lease says nothing", u, c.Who, d)
		}
	}
	u.ForgetAll("untold ", seen)
}

// on is what there is of the lock on u: it, or one of several.
func (l *Lock) on(p *Plan, u *unit) *Lock {
	for _, i := range l.Of {
		if p.Locks[i].Name == u.Name {
			l = &p.Locks[i]
		}
	}
	return l
}

// lease is the TTL of that.
func (l *Lock) lease(p *Plan, u *unit) time.Duration {
	return cmp.Or(l.on(p, u).Lease, p.Options.Lease)
}

// setPermits says how many permits a semaphore has, so that a claim of the largest size fits.
func (k *worker) setPermits(s *Step, h *handle) {
	w, began := k.w, k.p.moment()
	n := mostPermits + int(w.chance(uint64(k.slot), uint64(k.n), uint64(k.step), 11)%3)
	ctx, cancel := k.limit(s)
	defer cancel()
	err := h.sem.SetPermits(ctx, n)
	k.inTurn()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stats.Calls++
	w.noteLocked("%s sets %d permits: %v", k.String(), n, err)
	switch {
	case k.p.dead:
	case k.p.tardyLocked(began, k.p.askLocked()):
		w.judge.failLocked("late return", "SetPermits by %v took %v", k, k.p.ranLocked(began))
	case err == nil, errors.Is(err, holdfast.ErrClosed) && k.p.closed:
	case !errors.Is(err, holdfast.ErrUnavailable):
		w.judge.failLocked("odd error", "%v sets %d permits: %v", k, n, err)
	case s.Limit == 0 || k.p.ranLocked(began) < s.Limit:
		w.judge.unavailableLocked(k.p, h.units, fmt.Sprintf("%v sets %d permits", k, n), err)
	}
}
