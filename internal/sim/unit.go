package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
)

// unit is a lock on a server, or a Redlock over several, as the judges see it. World.mu guards it.
type unit struct {
	w       *World
	s       *server // nil: of a Redlock
	name    string
	kind    Kind
	queue   string // its key
	times   string
	channel string  // that Redisson's listen to
	members []*unit // of a Redlock; else nil

	claims []*claim
	waits  []*wait

	dirty    bool // Redis may have something else than state says
	state    state
	promised []holder                 // what Redis had when it lost its data
	lost     time.Duration            // when data of it was lost; -1: never
	excused  time.Duration            // until then that can show
	writer   uint64                   // the largest token of a writer, or of a lock that has no sides
	reader   uint64                   // the largest token of a reader
	since    map[string]time.Duration // since when something is so, by what it is
	gone     map[string]time.Duration // owner ids that were given back, and when
	line     line
	tenure   tenure
	turn     turn
	stays    []*stay
	staying  time.Duration   // until then the last of those lasts
	forcer   *process        // that was told that it has freed the lock by force; nil: none
	forced   time.Duration   // when it was told that
	stayed   map[string]bool // owner ids that no process has, of locks that stay taken
	late     time.Duration   // until then a release can be under way of a lease that had ended, and requests beside it
	sooner   bool            // the lock ends, or has ended by itself, earlier than it was to: only the first in the queue is told of that
}

// state is what Redis has of a lock.
type state struct {
	wrong   bool // it holds something that is none
	holders []holder
	until   time.Duration // when the key expires; 0: it does not
	queue   []string
	kept    []time.Duration // until when their places are
}

// holder is an owner id in Redis.
type holder struct {
	id    string
	until time.Duration // when its right ends
	since time.Duration // when it was seen first
}

// claim is a lease that a worker has.
type claim struct {
	p       *process
	lease   *holdfast.Lease // nil: it has none
	until   time.Duration   // without one: when it ends by itself; 0: unknown
	who     string
	owner   string // claims of one owner do not exclude each other
	label   string // of the context that it was asked for with
	write   bool
	nested  bool // under another lease
	granted time.Duration
	votes   bool    // of a Redlock
	units   []*unit // of the lease
	plan    *Lock
	step    *Step
}

// wait is a call that has not returned.
type wait struct {
	p       *process
	who     string
	since   time.Duration
	read    bool
	once    bool // it does not wait for other owners
	unlocks bool // it is an Unlock, or a call under a lease
	parted  bool // it wants several units, so it may have this one and wait for another
}

// unit returns what there is of a name on a server, which is made if there is none.
func (w *World) unit(n int, name string, k Kind) *unit {
	for _, u := range w.units {
		if u.name == name && u.s == w.servers[n] {
			return u
		}
	}
	u := &unit{w: w, s: w.servers[n], name: name, kind: k, queue: "redisson_lock_queue:{" + name + "}", times: "redisson_lock_timeout:{" + name + "}", channel: "redisson_lock__channel:{" + name + "}", lost: -1, since: map[string]time.Duration{}, gone: map[string]time.Duration{}, stayed: map[string]bool{}}
	if k == RW {
		u.queue, u.times, u.channel = "holdfast_rw_queue:{"+name+"}", "holdfast_rw_timeout:{"+name+"}", "redisson_rwlock:{"+name+"}"
	}
	w.units = append(w.units, u)
	u.s.units = append(u.s.units, u)
	return u
}

// election returns the unit of a Redlock.
func (w *World) election(name string, members []*unit) *unit {
	for _, u := range w.units {
		if u.s == nil && u.name == name {
			return u
		}
	}
	u := &unit{w: w, name: name, kind: Redlock, members: members, lost: -1, since: map[string]time.Duration{}, gone: map[string]time.Duration{}, stayed: map[string]bool{}}
	w.units = append(w.units, u)
	return u
}

func (u *unit) String() string {
	switch {
	case u.s == nil:
		return "redlock " + u.name
	case len(u.w.servers) > 1:
		return u.name + "@" + u.s.addr
	}
	return u.name
}

// loadLocked reads what Redis has, if that can be something new.
func (u *unit) loadLocked() {
	now := u.w.now()
	if u.s == nil || !u.dirty && (u.state.until == 0 || now < u.state.until) {
		return
	}
	u.dirty = false
	st := state{}
	do := u.s.redis.Do
	clock := do("time").([]any)
	micros := number(clock[0])*1e6 + number(clock[1])
	at := func(millis int64) time.Duration { // when that is
		return now + time.Duration(millis*1000-micros)*time.Microsecond
	}
	fields, ok := do("hgetall", u.name).([]any)
	if st.wrong = !ok; len(fields) > 0 {
		if e := do("pexpiretime", u.name).(int64); e > 0 {
			st.until = at(e)
		}
		for i := 0; i < len(fields); i += 2 {
			id := fields[i].(string)
			if id == "mode" {
				continue
			}
			h := holder{id: id, until: st.until}
			if u.kind == RW && !strings.HasSuffix(id, ":write") {
				h.until = 0
				if e := do("pexpiretime", "{"+u.name+"}:"+id+":rwlock_timeout:1").(int64); e > 0 {
					h.until = at(e)
				}
			}
			st.holders = append(st.holders, h)
		}
	}
	ids, _ := do("lrange", u.queue, "0", "-1").([]any)
	for _, id := range ids {
		st.queue = append(st.queue, id.(string))
		until, _ := do("zscore", u.times, id.(string)).(float64)
		st.kept = append(st.kept, at(int64(until)))
	}
	for i := range st.holders {
		h := &st.holders[i]
		h.since = now
		for _, old := range u.state.holders {
			if old.id == h.id || old.id == h.id+":write" { // or a downgrade
				h.since = old.since
			}
		}
	}
	u.soonerLocked(st)
	u.state = st
	u.w.judge.returnedFromLocked(u)
	u.w.judge.lineLocked(u)
	if st.until > 0 {
		u.w.atLocked(st.until+time.Millisecond, func() { u.dirty = true })
	}
}

// soonerLocked finds out what st says of an earlier end. A lock that a request has freed is not meant: a release looks for a waiter that hears.
func (u *unit) soonerLocked(st state) {
	before := u.state
	const inexact = time.Millisecond // Redis's times are in milliseconds
	stays := func(h holder) bool { return u.stayed[h.id] || h.since < u.w.now() }
	switch {
	case len(st.holders) == 0:
		u.sooner = u.sooner && u.w.now() >= before.until-inexact
	case st.until < before.until-inexact:
		u.sooner = slices.ContainsFunc(st.holders, stays)
	case st.until > before.until+inexact:
		u.sooner = false
	}
}

// held reports whether Redis has the lock taken.
func (u *unit) held() bool { return len(u.state.holders) > 0 || u.state.wrong }

// of returns the process that an owner id is of; nil: none that lives.
func (u *unit) of(id string) *process {
	for _, p := range u.w.all {
		if p.slot >= len(u.w.plan.Processes) {
			break // the one that looks whether all is well in the end
		}
		if prefix := p.prefix[u.s.n]; !p.dead && p.java == nil && prefix != "" && strings.HasPrefix(id, prefix) {
			return p
		}
	}
	return nil
}

// claimedBy reports whether a worker of p has a lease.
func (u *unit) claimedBy(p *process) bool {
	return slices.ContainsFunc(u.claims, func(c *claim) bool { return c.p == p })
}

// waitedBy reports whether a worker of p waits.
func (u *unit) waitedBy(p *process) bool {
	return slices.ContainsFunc(u.waits, func(x *wait) bool { return x.p == p })
}

// loseLocked says that data of the lock may be lost now.
func (u *unit) loseLocked() {
	u.lost = u.w.now()
	clear(u.gone)
	u.line = line{}
	u.writer, u.reader = 0, 0
	u.excused = u.w.now() + u.w.plan.lossSpan()
	u.dirty = true
}

// lossSpan is for how long a loss of data can show: until each lease that was granted before has ended.
func (p *Plan) lossSpan() time.Duration { return longestLease + 3*time.Second }

// standing is what a script finds of a queue.
type standing struct {
	ids  []string
	kept map[string]bool // whose place is kept
	held map[string]bool
}

// standing reads the queue.
func (u *unit) standing() (st standing) {
	do := u.s.redis.Do
	ids, _ := do("lrange", u.queue, "0", "-1").([]any)
	if len(ids) == 0 {
		return st
	}
	st.kept, st.held = map[string]bool{}, map[string]bool{}
	clock := u.s.clock()
	for _, id := range ids {
		id := id.(string)
		st.ids = append(st.ids, id)
		until, _ := do("zscore", u.times, id).(float64)
		st.kept[id] = until > float64(clock)
	}
	fields, _ := do("hkeys", u.name).([]any)
	for _, f := range fields {
		st.held[f.(string)] = true
	}
	return st
}

// valid reports whether the claim is now.
func (c *claim) valid() bool {
	if c.lease == nil {
		return c.p.w.now() < c.until
	}
	return c.lease.Valid()
}
