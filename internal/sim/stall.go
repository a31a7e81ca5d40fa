package sim

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A process that stands still, as one does that is stopped, or whose collector or host takes its processor away: the clock goes on, and
// nothing of it runs. What it has sent arrives, and what is sent to it lies in its sockets. When it goes on, all that was due meanwhile
// comes at once: what it has to read, workers whose pause or section is over, contexts that have ended, and the library's timers.
//
// These belong to the runtime, and a bubble has one clock. So a test builds the library once more with a call behind each of its timers that
// waits until the process goes on (stall_test.go); elsewhere they fire on time, and what they have a process write meanwhile is written when it goes on.
// Timers inside go-redis and those of a Redlock's rounds fire on time there as well.

// stallLocked has p stand still for d.
func (p *process) stallLocked(d time.Duration) {
	p.graveLocked(d)
	p.w.faulty = max(p.w.faulty, p.w.now()+d)
	if p.stalls++; p.stalls == 1 {
		p.standing, p.stood = make(chan struct{}), p.w.now()
	}
	p.w.afterLocked(d, p.goOnLocked)
}

// pause is a stall that begins when the server has answered a script of the process.
type pause struct {
	script string // what the script's name begins or ends with
	lasts  time.Duration
}

// answeredLocked begins such a stall if one is to begin now: the answer is on its way.
func (p *process) answeredLocked(script string) {
	for i, s := range p.pauses {
		if strings.Contains(script, s.script) && !p.w.healed {
			p.pauses = slices.Delete(p.pauses, i, i+1)
			p.w.noteLocked("%v stands still for %v", p, s.lasts)
			p.stallLocked(s.lasts)
			return
		}
	}
}

// goOnLocked ends a stall. p goes on if it was the last one.
func (p *process) goOnLocked() {
	if p.stalls--; p.stalls > 0 || p.standing == nil {
		return
	}
	p.wakeLocked()
}

// wakeLocked has p go on.
func (p *process) wakeLocked() {
	if p.standing == nil {
		return
	}
	close(p.standing)
	p.standing, p.woke = nil, p.w.now()
	p.still += p.woke - p.stood
	for _, c := range p.links {
		unsent := c.unsent
		c.unsent = nil
		for _, packet := range unsent {
			c.sendLocked(&c.up, content(packet), func() { c.arriveLocked(packet) })
		}
	}
}

// awake waits until p does not stand still, and reports whether it had to.
func (p *process) awake() (waited bool) {
	for ; ; waited = true {
		p.w.mu.Lock()
		standing := p.standing
		p.w.mu.Unlock()
		if standing == nil {
			return waited
		}
		<-standing
	}
}

// lag is how much later than the rest of a process that goes on a timer of the library may come.
const lag = 2 * time.Millisecond

// moment is a time in the life of a process.
type moment struct{ at, still time.Duration }

// moment is now.
func (p *process) moment() moment {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.momentLocked()
}

func (p *process) momentLocked() moment { return moment{p.w.now(), p.stillLocked()} }

// stillLocked is for how long p has stood still so far.
func (p *process) stillLocked() time.Duration {
	if p.standing != nil {
		return p.still + p.w.now() - p.stood
	}
	return p.still
}

// ranLocked is for how long p has run since a moment.
func (p *process) ranLocked(since moment) time.Duration {
	return p.w.now() - since.at - (p.stillLocked() - since.still)
}

// parts says which process a part of the library belongs to: a manager, an executor, a scheduler. Those of a world that has ended are not kept.
var parts sync.Map // any → *process

// partsOf returns the parts of a manager whose timers wait while their process stands still. It is set where they do.
var partsOf = func(*holdfast.Manager) []any { return nil }

// deadline is a context that ends at a time, or as soon after it as its process runs.
type deadline struct {
	context.Context
	at time.Time
}

// within returns a context that ends after d.
func (k *worker) within(d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(k.p.ctx)
	timer := time.AfterFunc(d, func() {
		k.awake()
		cancel(context.DeadlineExceeded)
	})
	return &deadline{ctx, time.Now().Add(d)}, func() { timer.Stop(); cancel(nil) }
}

func (d *deadline) Deadline() (time.Time, bool) { return d.at, true }

func (d *deadline) Err() error {
	if errors.Is(context.Cause(d.Context), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return d.Context.Err()
}
