package explore

import (
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/judge"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/validity"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// caller is one caller, and what it knows.
type caller struct {
	*Caller
	w       *World
	id      int
	phase   phase
	waiters []*lock.Waiter // its waits now: one, or one for each lock of a Multi
	leases  []*lock.Lease  // what it has
	claims  []*judge.Claim // likewise, as the judge sees it
	then    int            // how much of Then it has done
	heard   bool           // one of Redisson's: of a release
	began   int            // Unlocks that it waits for
	why     *lock.Verdict  // of its end; nil: it had the lock
}

// phase is how far a caller has come.
type phase uint8

const (
	outside phase = iota
	waiting
	inside
	leaving // its Unlock waits for the answer
	gone
)

func (c *caller) p() *process { return c.w.procs[c.Process] }

// of is the lock, or the first of several.
func (c *caller) of() *Name { return &c.w.plan.Locks[c.Locks[0]] }

func (c *caller) by(n int) lock.By {
	return lock.By{Handle: &lock.Handle{Name: c.w.plan.Locks[n].Name, Terms: &c.terms.Terms}, Kind: c.Kind}
}

// comes has the caller ask for its lock.
func (c *caller) comes() {
	if c.Java {
		c.phase = waiting
		c.asks()
		return
	}
	c.phase = waiting
	if len(c.Locks) > 1 && c.together() {
		return
	}
	c.enters(c.Locks[len(c.leases)])
}

// together takes several locks by one request; false: some are not idle.
func (c *caller) together() bool {
	p := c.p()
	for _, n := range c.Locks {
		if !p.lock(n).IsIdle() {
			for _, n := range c.Locks {
				p.event(p.lock(n), p.lock(n).Step) // as one that was made for nothing
			}
			return false
		}
	}
	f := &flight{p: p, sent: c.w.now}
	for _, n := range c.Locks {
		w := &lock.Waiter{By: c.by(n), Shell: c}
		c.waiters = append(c.waiters, w)
		l := p.lock(n)
		p.event(l, func(m *lock.Moment) { f.tries = append(f.tries, l.EnterWith(m, w)) })
	}
	f.patience = f.tries[0].Patience
	f.script, f.args = p.says.AcquireTogether(f.tries)
	c.w.flights = append(c.w.flights, f)
	return true
}

// enters waits for one lock.
func (c *caller) enters(n int) {
	p := c.p()
	l := p.lock(n)
	w := &lock.Waiter{By: c.by(n), Once: c.Once, Shell: c}
	c.waiters = append(c.waiters, w)
	p.event(l, func(m *lock.Moment) {
		lease, v, parked := l.Enter(m, w, nil)
		if !parked {
			w.Lease, w.Verdict = lease, v
			c.told(w)
		}
	})
}

// told is called with the outcome of a wait.
func (c *caller) told(w *lock.Waiter) {
	together := len(c.waiters) > 1
	c.waiters = slices.DeleteFunc(slices.Clone(c.waiters), func(o *lock.Waiter) bool { return o == w })
	if w.Lease != nil {
		c.leases = append(c.leases, w.Lease)
		c.w.judge.granted(c, w.Lease, false)
	} else {
		c.why = w.Verdict
	}
	switch {
	case len(c.waiters) > 0:
		return // of a Multi: the others come with the same answer
	case c.why == nil && len(c.leases) == len(c.Locks):
		c.phase = inside
	default:
		c.w.after(func() { c.goesOn(together || len(c.leases) == 0 && len(c.Locks) > 1 && c.why.Is(lock.NotAcquired)) })
	}
}

// goesOn is for a caller that has not got all that it wants: again, if it wanted several at once.
func (c *caller) goesOn(again bool) {
	switch {
	case c.why == nil: // one after the other
		c.enters(c.Locks[len(c.leases)])
	case again && c.why.Is(lock.NotAcquired):
		c.givesBack()
		c.why = nil
		c.enters(c.Locks[0])
	default:
		c.givesBack()
		c.ends()
	}
}

// givesBack gives back what the caller has, without waiting for the answer.
func (c *caller) givesBack() {
	for i, l := range c.leases {
		c.w.judge.Ends(c.claims[i])
		c.p().event(l.Of(), func(m *lock.Moment) { l.Of().GiveBack(m, l) })
	}
	c.leases, c.claims = nil, nil
}

// leaves has the caller give up.
func (c *caller) leaves() {
	for _, w := range slices.Clone(c.waiters) {
		l := c.p().lock(c.lockOf(w))
		c.p().event(l, func(m *lock.Moment) {
			if v, left := l.Leave(m, []error{errSilence}, w); left {
				c.why = v
			}
		})
	}
	c.waiters = nil
	c.givesBack()
	c.ends()
}

// lockOf is the lock that w waits for.
func (c *caller) lockOf(w *lock.Waiter) int {
	for n := range c.w.plan.Locks {
		if c.w.plan.Locks[n].Name == w.Name {
			return n
		}
	}
	panic("no such lock")
}

// does is what the holder does next, of Then.
func (c *caller) does() {
	what := c.Then[c.then]
	c.then++
	l := c.leases[0]
	p, of := c.p(), l.Of()
	switch what {
	case Extends:
		var h *lock.Hold
		var ttl time.Duration
		var why *lock.Verdict
		p.event(of, func(m *lock.Moment) { h, ttl, why = of.Extend(m, l, 3*leases) })
		if why == nil {
			script := protocol.RenewScript(h.Kind)
			args := p.says.Renew(script, ttl, h)
			c.w.flights = append(c.w.flights, &flight{p: p, extends: h, ttl: ttl, script: script, args: args, sent: c.w.now, patience: validity.AskPatience(0)})
		}
	case Reenters, ReentersToRead:
		by := c.by(c.Locks[0])
		if what == ReentersToRead {
			by.Kind = lock.ReadKind
		}
		p.event(of, func(m *lock.Moment) {
			if again, held, v := of.Reenter(l, &by, c.w.now, c.w.now.Sub(p.set.Epoch)); held && v == nil {
				c.leases = append(c.leases, again)
				c.w.judge.granted(c, again, true)
			}
		})
	}
}

// unlocks gives up one lease, the latest; but the write side before the read side.
func (c *caller) unlocks() {
	if c.Java {
		c.javaUnlocks()
		return
	}
	at := len(c.leases) - 1
	if c.leases[at].Kind() == lock.ReadKind && c.leases[0].Kind() == lock.WriteKind {
		at = 0
	}
	l := c.leases[at]
	c.leases = append(c.leases[:at:at], c.leases[at+1:]...)
	c.w.judge.gives(c, at)
	c.p().event(l.Of(), func(m *lock.Moment) {
		r, given := l.Of().Unlock(m, l, nil)
		switch {
		case r != nil:
			c.began++
			r.Await(c)
		case !given && !l.End().Is(lock.Released):
			c.w.judgeLoss(c, l.End())
		}
	})
	c.ends()
}

// ends goes to the next phase when nothing is held any more.
func (c *caller) ends() {
	switch {
	case len(c.leases) > 0:
	case c.began > 0:
		c.phase = leaving
	default:
		c.phase = gone
	}
}

// answered is called with the answer to an Unlock.
func (c *caller) answered(v *lock.Verdict) {
	c.began--
	c.w.judgeLoss(c, v)
	if c.phase == leaving && c.began == 0 {
		c.phase = gone
	}
}

// What one of Redisson's does. Its requests take no time.

const (
	javaTake = `if redis.call('exists', KEYS[1]) == 0 then redis.call('hset', KEYS[1], ARGV[1], 1) redis.call('pexpire', KEYS[1], ARGV[2]) return -3 end
return redis.call('pttl', KEYS[1])`
	javaGive = `if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('del', KEYS[1]) redis.call('publish', KEYS[2], '0') return 1`
	javaID = "f47ac10b-58cc-4372-a567-0e02b2c3d479:1"
)

func (c *caller) java(text string, args ...string) any {
	w, k := c.w, c.of().keys
	a := w.redis.raw(w.db, w.now, w.listening(), text, []string{k.Lock.(string), k.Channel(), wire.PermitSet(c.of().Name)}, args)
	w.db = a.after
	for _, m := range a.sent {
		w.post(m)
	}
	return a.reply
}

func (c *caller) asks() {
	c.heard = false
	for _, p := range c.w.procs {
		p.turn[c.Locks[0]] = false
	}
	take, args := javaTake, []string{javaID, "600000"}
	if n := c.of().Permits; n > 0 {
		take, args = javaTakePermit, []string{javaPermit, strconv.FormatInt(c.w.now.UnixMilli(), 10), strconv.Itoa(n)}
	}
	if c.java(take, args...) == int64(-3) {
		c.phase = inside
		c.w.judge.foreign(c)
	}
}

func (c *caller) javaUnlocks() {
	c.w.judge.gives(c, 0)
	if c.of().Permits > 0 {
		c.java(javaGivePermit, javaPermit)
	} else {
		c.java(javaGive, javaID)
	}
	c.phase = gone
}
