package supervisor

import (
	"fmt"
	"time"
)

// plan decides when the command is told to end and when it is killed. It is pure: the caller
// brings the time. It belongs to one goroutine.
//
//	                     no renewal is confirmed any more
//	|--------------------------|------ grace ------|
//	renewed                   TERM         KILL: the lease's deadline
type plan struct {
	grace   time.Duration
	loss    Loss
	explain func(error) string // nil: the errors of the lease are not known
	limit   time.Time          // of the time for which the lock may be held; zero: none

	told   bool      // TERM is due, or was
	killed bool      // KILL is due, or was
	killAt time.Time // once told; it does not move any more, even if a renewal is confirmed later
	why    string    // for people; empty: nothing has happened
}

// limitSlack is how much later than the lease's own limit the caller's may be.
const limitSlack = 100 * time.Millisecond

// action is what a step asks for.
type action uint8

const (
	nothing action = iota
	warn           // tell people
	term
	kill
)

// step returns what is due now. err is why the lease has ended; nil: it has not.
func (p *plan) step(now, deadline time.Time, err error) action {
	left := until(now, deadline)
	switch {
	case p.killed:
		return nothing
	case p.told && until(now, p.killAt) > 0:
		return nothing
	case p.told:
		return p.kill()
	case left <= 0:
		p.because("the lease ended at its deadline, no renewal was confirmed in time", err)
		return p.kill()
	case err != nil:
		p.because("the lock was taken away", err)
		return p.tell(now.Add(p.grace))
	case p.loss == LossTerm && left < p.grace:
		text := "no renewal was confirmed, and the lease ends in %v"
		if !p.limit.IsZero() && until(now, p.limit) < p.grace+limitSlack {
			text = "the time for which the lock may be held ends in %v"
		}
		p.because(fmt.Sprintf(text, left.Round(time.Millisecond)), nil)
		return p.tell(deadline)
	}
	return nothing
}

func (p *plan) because(text string, err error) {
	if p.why = text; err != nil && p.explain != nil {
		p.why = p.explain(err)
	}
}

// tell begins the end of the command.
func (p *plan) tell(killAt time.Time) action {
	p.told, p.killAt = true, killAt
	if p.loss == LossTerm && p.grace > 0 {
		return term
	}
	return p.kill()
}

func (p *plan) kill() action {
	p.told, p.killed = true, true
	if p.loss == LossWarn {
		return warn
	}
	return kill
}

// next returns how long nothing can be due unless the lease changes.
func (p *plan) next(now, deadline time.Time) time.Duration {
	switch {
	case p.killed:
		return time.Hour
	case p.told:
		return until(now, p.killAt)
	case p.loss == LossTerm:
		return until(now, deadline.Add(-p.grace))
	}
	return until(now, deadline)
}

// until is the shorter one of the times by the monotonic and by the wall clock: the first stands still while
// the host sleeps, the second can be set.
func until(now, t time.Time) time.Duration {
	return min(t.Sub(now), t.Round(0).Sub(now.Round(0)))
}
