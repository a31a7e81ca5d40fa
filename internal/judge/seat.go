package judge

import (
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// Seat is who leads an election, as Redis has it, or says so; the zero value: none does.
type Seat struct {
	Owner string
	Term  uint64
	Value string
}

// ReadSeat reads who leads: the owner of the lock, if the record is its own and has a value. do executes a command.
func ReadSeat(do func(args ...string) any, l *Lock) (seat Seat) {
	record := map[string]string{}
	fields, _ := do("hgetall", wire.LeaderChannel(l.Name)).([]any)
	for i := 0; i < len(fields); i += 2 {
		record[fields[i].(string)] = fields[i+1].(string)
	}
	if value, leads := record["value"]; leads && l.Holder(record["owner"]) != nil {
		seat = Seat{Owner: record["owner"], Value: value}
		seat.Term, _ = strconv.ParseUint(record["token"], 10, 64)
	}
	return seat
}

// Observer is a caller that is told of each change of a seat.
type Observer struct {
	Process Process
	Who     string
	Since   time.Duration
	Seat    Seat   // it was told last
	Begun   bool   // it was told at all
	term    uint64 // the last one that it was told of
}

// Recorded judges the record of a valid term whose leader has been told that one of these values is published, or has asked for it.
func (j *Judge) Recorded(l *Lock, c *Claim, term uint64, values ...string) {
	if j.Now() <= l.Excused || !c.valid(j.Now()) {
		return
	}
	for _, v := range values {
		if l.Seat.Term == term && l.Seat.Value == v {
			return
		}
	}
	j.Fail(l, "record", "%v: %s leads in term %d and says %q, and Redis has %+v", l, c.Who, term, values, l.Seat)
}

// Named judges an answer that says who leads: so it was at one moment of the call, of which was says which these are.
func (j *Judge) Named(l *Lock, who string, said Seat, was func(Seat) bool) {
	if !was(said) {
		j.Fail(l, "false leader", "%v: %s is told of %+v, which did not lead during the call", l, who, said)
	}
}

// Observed is called with what an observer is told: terms grow.
func (j *Judge) Observed(l *Lock, o *Observer, said Seat) {
	o.Seat, o.Begun = said, true
	if said.Term == 0 {
		return
	}
	if said.Term < o.term && j.Now() > l.Excused {
		j.Fail(l, "observed terms", "%v: %s is told of term %d after %d", l, o.Who, said.Term, o.term)
	}
	o.term = said.Term
}

// Observes finds an observer that was not told of the last change. told says whether a message was sent about that; until deaf the observer's
// process may not hear it.
func (j *Judge) Observes(l *Lock, o *Observer, told bool, deaf time.Duration) {
	air := o.Process.Air(l)
	bound := j.Outage(l)
	if air.Calm && told && j.Now() > deaf {
		bound = j.Prompt(l)
	}
	stale := (!o.Begun || o.Seat != l.Seat) && air.Healthy && j.Now() > l.Excused
	of := "unobserved by " + o.Who + ": "
	which := fmt.Sprint(l.Seat)
	l.ForgetAll(of, map[string]bool{which: true})
	if d := j.Lasts(l, of+which, stale, max(o.Since, air.Since, deaf), bound); d > bound {
		j.Fail(l, "unobserved", "%v: %s was told of %+v, and Redis has %+v for %v", l, o.Who, o.Seat, l.Seat, d)
	}
}
