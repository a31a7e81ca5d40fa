package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/judge"
)

// worker makes the sections of its plan, one after the other. It belongs to a slot: when its process is killed, it goes on in the next
// one.
type worker struct {
	w    *World
	slot int
	n    int
	step int
	p    *process // where the section is; nil: the world has ended
}

func (k *worker) String() string { return fmt.Sprintf("%v/%d#%d", k.p, k.n, k.step) }

func (k *worker) run(steps []Step) {
	for i := range steps {
		k.step = i
		if k.p = k.process(); k.p == nil {
			return
		}
		k.pause(steps[i].After)
		if k.p = k.process(); k.p == nil {
			return
		}
		k.section(&steps[i])
	}
}

// process returns the process of the slot, once one lives; nil if the world has ended.
func (k *worker) process() *process {
	for {
		k.w.mu.Lock()
		p, born, ended := k.w.processes[k.slot], k.w.born[k.slot], k.w.ended
		lives := p != nil && !p.dead && !p.closed
		k.w.mu.Unlock()
		switch {
		case ended:
			return nil
		case lives:
			return p
		}
		select {
		case <-born:
		case <-k.w.closing:
		}
		k.inTurn()
	}
}

// turns is how many goroutines of a world wait for a moment of their own.
const turns = 1 << 10

// inTurn waits for the next moment of the n-th goroutine of a slot: no other one of those goes on at such a moment. So it makes no difference which
// of them the Go runtime lets run first when one event has woken them.
func (w *World) inTurn(slot, n int) {
	time.Sleep(time.Duration(turns - (int64(w.now())-int64(slot*16+n))%turns))
}

func (k *worker) inTurn() { k.w.inTurn(k.slot, k.n) }

// awake waits until the worker's process does not stand still.
func (k *worker) awake() {
	k.p.awake()
	k.inTurn()
}

// pause sleeps, but not beyond the death of the process.
func (k *worker) pause(d time.Duration) {
	sleep(k.p.ctx, d)
	k.awake()
}

// limit returns the context of a call.
func (k *worker) limit(s *Step) (context.Context, context.CancelFunc) {
	switch {
	case s.Limit == 0:
		return context.WithCancel(k.p.ctx)
	case s.Cancel:
		ctx, cancel := context.WithCancel(k.p.ctx)
		timer := time.AfterFunc(s.Limit, func() { k.awake(); cancel() })
		return ctx, func() { timer.Stop(); cancel() }
	}
	return k.within(s.Limit)
}

// attempt is a call that asks for a lock.
type attempt struct {
	k     *worker
	step  *Step
	h     *handle
	began moment
	waits map[*unit]*judge.Wait
	write bool
	owner string
	label string          // of its context
	under *holdfast.Lease // whose end ends its context; nil: none
}

// all are the units that a lease is a claim of; of a Redlock's, the whole comes first.
func (h *handle) all() []*unit {
	if h.vote != nil {
		return append([]*unit{h.vote}, h.units...)
	}
	return h.units
}

// beginLocked registers a call.
func (k *worker) begin(s *Step, h *handle) *attempt {
	w := k.w
	w.mu.Lock()
	defer w.mu.Unlock()
	a := &attempt{k: k, step: s, h: h, began: k.p.momentLocked(), waits: map[*unit]*judge.Wait{}, write: !s.Read, owner: k.String(), label: k.String()}
	w.stats.Calls++
	all := h.all()
	for _, u := range all {
		x := &judge.Wait{Process: k.p, Who: k.String(), Since: a.began.at, Read: s.Read, Once: s.Way == ByTry, Parted: len(all) > 1}
		a.waits[u] = x
		u.meetsLocked(x)
		if !k.p.dead {
			w.judge.Begins(&u.Lock, x)
		}
	}
	w.noteLocked("%s %s %s%s", k.String(), s.Way, h.plan.Name, s.described())
	return a
}

func (s *Step) described() string {
	text := ""
	if s.Read {
		text += ", the read side"
	}
	if s.Limit > 0 {
		text += fmt.Sprintf(", for %v", s.Limit)
	}
	return text
}

// end judges what a call has returned. It returns the claim, nil if there is none.
func (a *attempt) end(lease *holdfast.Lease, err error) *claim {
	k, w := a.k, a.k.w
	k.inTurn()
	w.mu.Lock()
	defer w.mu.Unlock()
	took := k.p.ranLocked(a.began)
	var known heed
	for u, x := range a.waits {
		h := u.heedLocked(x)
		known.since, known.sought = h.since, known.sought || h.sought
		u.Returns(x)
	}
	if k.p.dead {
		return nil
	}
	w.judge.returnedLocked(a, took, err)
	if err != nil {
		w.noteLocked("%s fails after %v: %v", k.String(), took, err)
		return nil
	}
	w.stats.Grants++
	w.noteLocked("%s is granted %s after %v, token %d, until %v", k.String(), a.h.plan.Name, took, lease.Token(), lease.Deadline().Sub(w.began))
	c := newClaim(k.p, lease, a.owner, a.write, a.h, a.step)
	c.label, c.heed = a.label, known
	w.judge.grantedLocked(c, false)
	return c
}

// section is one step.
func (k *worker) section(s *Step) {
	k.w.mu.Lock()
	k.p.callsLocked()
	k.w.mu.Unlock()
	h := &k.p.locks[s.Lock]
	if h.plan.Kind == Semaphore && (s.Way == ByInspect || s.Way == ByForce || s.Way == ByForceOf) {
		k.setPermits(s, h) // internal/locktest/semaphore has what else operators do
		return
	}
	switch s.Way {
	case ByInspect:
		k.inspect(s, h)
		return
	case ByForce, ByForceOf:
		k.force(s, h)
		return
	case ByLocks:
		k.locals()
		return
	case ByCampaign:
		k.campaign(s, h)
		return
	case ByAttach:
		k.attach(s)
		return
	}
	calls := h.side(s.Read, k.step%2 == 0)
	ctx, cancel := k.limit(s)
	defer cancel()
	a := k.begin(s, h)
	ctx = holdfast.WithLabel(ctx, a.label)
	switch s.Way {
	case ByTry:
		k.hold(s, h, a.end(calls.try(ctx)))
	case ByAsync:
		if calls.async == nil {
			k.hold(s, h, a.end(calls.lock(ctx)))
			return
		}
		r := <-calls.async(ctx)
		k.hold(s, h, a.end(r.Lease, r.Err))
	default: // ByLock
		k.hold(s, h, a.end(calls.lock(ctx)))
	}
}

// hold is what is done under a lease, and its end.
func (k *worker) hold(s *Step, h *handle, c *claim) {
	if c == nil {
		return
	}
	parts := time.Duration(len(s.Inside) + 1)
	k.work(c, s.Hold/parts)
	for _, in := range s.Inside {
		if h.plan.Kind == Semaphore && in != Extend {
			continue // it is not re-entrant, and has no sides
		}
		switch in {
		case Reenter:
			k.reenter(s, h, c)
		case Downgrade:
			if h.read != nil && !s.Read {
				if k.downgrade(s, h, c) {
					return
				}
			}
		case Upgrade:
			if h.read != nil && s.Read {
				k.upgrade(h, c)
			}
		case Afresh:
			k.afresh(s, h, c)
		case Extend:
			k.extend(c, time.Duration(k.w.chance(uint64(k.slot), uint64(k.n), uint64(k.step), 7)%uint64(mostExtension)))
		}
		k.work(c, s.Hold/parts)
	}
	if s.End == Never {
		k.w.mu.Lock()
		k.w.noteLocked("%s keeps its lease", k.String())
		k.w.mu.Unlock()
		k.keep(c)
		return
	}
	if s.End == HandOver && len(c.units) == 1 && h.plan.AtLeast == 0 {
		k.handOver(s, c)
		return
	}
	k.unlock(c)
}

// work passes time under a lease, until its end at most, but for a step that goes on then.
func (k *worker) work(c *claim, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	ended := c.lease.Err() != nil
	wanted := k.heeds(c)
	defer k.awake()
	select {
	case <-timer.C:
	case <-wanted:
		k.awake()
		k.stepsAside(c)
	case <-k.p.ctx.Done():
	case <-c.lease.Done():
		k.awake()
		if !ended {
			k.ended(c)
		}
		if c.step.Over {
			select {
			case <-timer.C:
			case <-k.p.ctx.Done():
			}
		}
	}
}

// ended judges when a worker was told of the end of its lease.
func (k *worker) ended(c *claim) {
	w := k.w
	w.mu.Lock()
	defer w.mu.Unlock()
	err := c.lease.Err()
	w.noteLocked("%s has ended: %v", c.Who, err)
	var lost *holdfast.LostError
	if errors.As(err, &lost) && !c.p.dead {
		w.judge.Told(&c.units[0].Lock, c.Who, w.now()-max(c.Lease.Ends(), c.p.woke), time.Millisecond+lag)
	}
	w.judge.lossLocked(c, err, false)
}

// keep has a lease outlive its section: it lasts until Close, or until nothing more happens but that others wait for it.
func (k *worker) keep(c *claim) {
	early := c.lease.Err() != nil
	select {
	case <-c.lease.Done():
		if errors.Is(c.lease.Err(), holdfast.ErrClosed) {
			return
		}
		k.awake()
		if !early {
			k.ended(c)
		}
	case <-k.p.ctx.Done():
		return
	case <-k.w.closing:
		k.inTurn()
	}
	k.unlock(c)
}
