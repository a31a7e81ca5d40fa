package judge

import (
	"fmt"
	"time"
)

// Violation is a promise that was broken.
type Violation struct {
	At   time.Duration
	Rule string
	Lock string // "": of none alone
	Text string
}

func (v Violation) String() string { return fmt.Sprintf("%v: %s: %s", v.At, v.Rule, v.Text) }

// World is what a judge asks of the world that feeds it. Times count from its beginning.
type World interface {
	Now() time.Duration
	// Of is the process that an owner id of the lock is of; nil: none that lives.
	Of(l *Lock, id string) Process
	// Wakes says how it is for a caller that waits.
	Wakes(l *Lock, x *Wait) Waking
	// Prompt is how long a message, or a question and its answer, may take where nothing is wrong; Tidy likewise until what was given up is
	// out of Redis; Lingers for how much longer the process keeps a lock after Unlock, as the holder; Outage is how long anything may
	// take while something is wrong, or soon after.
	Prompt(l *Lock) time.Duration
	Tidy(l *Lock) time.Duration
	Lingers(p Process) time.Duration
	Outage(l *Lock) time.Duration
	// Recheck asks for a look at a time at which nothing may happen.
	Recheck(at time.Duration)
	// Broken is told of each violation that is kept.
	Broken(v Violation)
}

// Process is a process that has locks.
type Process interface {
	fmt.Stringer
	// Owns reports whether an owner id of the lock is the process's.
	Owns(l *Lock, id string) bool
	// Air is how things are between the process and the lock's server.
	Air(l *Lock) Air
}

// Air is what can be expected of a process.
type Air struct {
	Healthy bool          // it runs, and can reach the server
	Calm    bool          // and nothing has been wrong for so long that all must be as if nothing had ever been
	Since   time.Duration // when what was wrong last is over; it may be later than now
	Hears   time.Duration // since when the server tells it of a grant; -1: it does not
}

// Waking is what can be expected of a lock for which a caller waits.
type Waking struct {
	Free   bool          // no caller has it, and the waiter could take it
	From   time.Duration // not before this has that to be counted
	Bound  time.Duration // for so long it may be so
	Behind string        // the first in the queue, if it takes time to get past that one; "": none
}

// Judge judges the locks of a world, which guards it.
type Judge struct {
	World
	Found  []Violation // the first of each rule
	Closed bool        // all that is to come is the end
	seen   map[string]bool
}

// New returns a judge that has found nothing.
func New(w World) *Judge { return &Judge{World: w, seen: map[string]bool{}} }

// Fail takes note of the first violation of each rule.
func (j *Judge) Fail(l *Lock, rule, format string, args ...any) {
	if j.seen[rule] {
		return
	}
	j.seen[rule] = true
	v := Violation{At: j.Now(), Rule: rule, Text: fmt.Sprintf(format, args...)}
	if l != nil {
		v.Lock = l.Name
	}
	j.Found = append(j.Found, v)
	j.Broken(v)
}

// Look judges what is so now.
func (j *Judge) Look(l *Lock) {
	if j.Closed {
		return
	}
	j.Exclusion(l)
	l.noteIdle(j)
	if l.Members == nil {
		j.holds(l)
		j.places(l)
	}
	j.wakes(l)
}
