package sim

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
)

// The calls of a section, each with what it promises.

const (
	mostExtension = 2 * time.Second
	longestLease  = 3 * time.Second
	// punctual is how late a call may return that a context bounds, in a world where computing takes no time.
	punctual = time.Millisecond
	// overdue is how late it may return where it waits for Redis: requests are looked at every 25 ms, and one may follow another.
	overdue = 60 * time.Millisecond
)

// unlock gives a lease up.
func (k *worker) unlock(c *claim) {
	if c.term != nil {
		k.giveUp(c, "Resign", func() error { return c.term.Resign(context.Background()) })
		return
	}
	k.giveUp(c, "Unlock", func() error { return c.lease.Unlock(context.Background()) })
}

// giveUp gives a lease up by a call.
func (k *worker) giveUp(c *claim, name string, call func() error) {
	w := k.w
	w.mu.Lock()
	if k.p.dead {
		w.mu.Unlock()
		return
	}
	valid, early, began := c.lease.Valid(), c.lease.Err(), c.p.momentLocked()
	w.judge.Ends(&c.Claim)
	u, s := w.busyLocked(c), c.staysLocked()
	w.noteLocked("%s: %s, valid %v", c.Who, name, valid)
	w.mu.Unlock()
	err := call()
	k.inTurn()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.idleLocked(u)
	took := c.p.ranLocked(began)
	w.noteLocked("%s: %s took %v: %v", c.Who, name, took, err)
	if c.p.dead {
		return
	}
	if most := c.p.secondLocked() + overdue; took > most && (c.term == nil || took > most+c.p.askLocked()) {
		w.judge.failLocked("late return", "%s of %s took %v", name, c.Who, took)
	}
	if name != "Detach" || w.now() < c.Lease.Ends() { // it cannot leave what has ended before Redis executed it
		w.judge.lossLocked(c, err, valid)
	}
	w.judge.saidLocked(s, err)
	switch {
	case err == nil:
		w.judge.Hidden(&c.units[0].Lock, c.Who, early)
	case errors.Is(err, holdfast.ErrLeaseLost), errors.Is(err, holdfast.ErrMaxHold), errors.Is(err, holdfast.ErrClosed) && c.p.closed:
	case errors.Is(err, holdfast.ErrUnavailable) && c.plan.Kind == RW && !time.Now().Before(c.lease.Deadline()): // a downgrade that its time has overtaken
	case errors.Is(err, holdfast.ErrUnavailable):
		w.judge.unavailableLocked(c.p, c.units, c.Who, err)
	case name == "Detach" && c.plan.Kind == RW && !c.Write && errors.Is(err, holdfast.ErrInvalidOption): // other readers share what the process has
	default:
		w.judge.failLocked("odd error", "%s of %s: %v", name, c.Who, err)
	}
}

// secondLocked is how long TryLock, Unlock and others may block: a second, or twelve round trips where that is more. To a server that has answered
// late, because it stood still, the library allows two of the trips that it has seen, but no more than half of a lease.
func (p *process) secondLocked() time.Duration {
	return p.boundLocked(longestLease / 2)
}

// askLocked is how long Close, Extend and questions may block, which no lease bounds: five seconds for a new connection, and twelve of the trips that
// the library has seen, but no more than ten seconds.
func (p *process) askLocked() time.Duration { return p.boundLocked(10 * time.Second) }

// boundLocked is most while or after something was wrong.
func (p *process) boundLocked(most time.Duration) time.Duration {
	d := max(time.Second, 24*(p.w.plan.slowest()+p.slowest))
	for _, s := range p.w.servers {
		if s.trouble > p.w.now() || p.trouble > p.w.now() {
			d = max(d, most)
		}
	}
	return d + p.w.plan.Options.AckIn
}

// firstWithin is how long the first answer of all may take.
const firstWithin = 5 * time.Second

// callsLocked is called with each section.
func (p *process) callsLocked() {
	if p.first == 0 {
		p.first = p.w.now() + firstWithin
	}
}

// tardyLocked reports whether a question that began at began, and has ended, took longer than most.
func (p *process) tardyLocked(began moment, most time.Duration) bool {
	return p.ranLocked(began) > max(most, p.first-began.at)+overdue
}

// slowest is how long a packet takes at most.
func (p *Plan) slowest() time.Duration {
	if p.Spikes {
		return 21 * p.Latency
	}
	return p.Latency
}

// extend asks for more time.
func (k *worker) extend(c *claim, d time.Duration) {
	w := k.w
	d += 10 * time.Millisecond
	valid, asked, began := c.lease.Valid(), time.Now(), c.p.moment()
	err := c.lease.Extend(k.p.ctx, d)
	k.inTurn()
	w.mu.Lock()
	defer w.mu.Unlock()
	took := c.p.ranLocked(began)
	w.noteLocked("%s asks for %v more, after %v: %v", c.Who, d, took, err)
	margin := max(25*time.Millisecond, d/50)
	switch {
	case c.p.dead:
	case c.p.tardyLocked(began, c.p.askLocked()): // answers that wait for replicas do not show the round trip
		w.judge.failLocked("late return", "Extend of %s took %v", c.Who, took)
	case err == nil && c.lease.Err() == nil && !c.p.closed && c.lease.Deadline().Before(asked.Add(d-min(margin, d/2)-time.Millisecond)):
		w.judge.failLocked("extension", "%s asked for %v, and has %v", c.Who, d, time.Until(c.lease.Deadline()))
	case errors.Is(err, holdfast.ErrUnavailable):
		if c.plan.Kind != RW { // the answer to a downgrade may be on its way
			w.judge.unavailableLocked(c.p, c.units, c.Who, err)
		}
	case err != nil && valid && !errors.Is(err, holdfast.ErrLeaseLost) && !errors.Is(err, holdfast.ErrMaxHold) && !errors.Is(err, holdfast.ErrClosed) && !errors.Is(err, holdfast.ErrInvalidOption):
		w.judge.failLocked("odd error", "Extend of %s: %v", c.Who, err)
	}
	w.judge.lookLocked()
}
