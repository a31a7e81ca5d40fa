package engine

import (
	"cmp"
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/internal/validity"
)

// Unlock gives up the lease.
func (l *Lease) Unlock(ctx context.Context) error {
	e := l.entry()
	ctx, op := l.observe(ctx, e, !part)
	err := l.unlock(ctx, e, op.Trace())
	unlocked(op, err)
	return err
}

// UnlockAgain is Unlock that is not observed: of a lease that was unlocked before, or of a part.
func (l *Lease) UnlockAgain(ctx context.Context) error { return l.unlock(ctx, l.entry(), nil) }

// unlock is Unlock, not observed. e is the lease's entry. trace is the parent of the spans of requests; nil: none.
func (l *Lease) unlock(ctx context.Context, e *entry, trace context.Context) error {
	if e == nil {
		return l.few().group.unlock(ctx)
	}
	u := unlocking{lease: l, entry: e}
	u.begin(time.Now(), trace)
	return u.wait()
}

// beginUnlock begins the Unlock of a part, which is valid if it was at the time at. The function that it returns waits for the
// answer.
func (l *Lease) beginUnlock(ctx context.Context, at time.Time) (wait func() error) {
	u := unlocking{lease: l, entry: l.entry()}
	_, op := l.observe(ctx, u.entry, part)
	u.begin(at, op.Trace())
	return func() error {
		err := u.wait()
		unlocked(op, err)
		return err
	}
}

// observe begins an Unlock of l. e is its entry; nil: it is of several locks.
func (l *Lease) observe(ctx context.Context, e *entry, isPart bool) (context.Context, *telemetry.Operation) {
	if e == nil {
		return l.Engine().Telemetry.Release(ctx, l.Subject, !isPart)
	}
	return e.engine.Telemetry.Release(ctx, l.Subject, !isPart)
}

// unlocked ends op, an Unlock, with what it returns.
func unlocked(op *telemetry.Operation, err error) {
	switch {
	case op == nil:
	case err == nil:
		op.End("released", "", nil)
	default:
		op.End("error", errorType(err), err)
	}
}

// unlocking is an Unlock.
type unlocking struct {
	lease    *Lease
	entry    *entry
	told     chan *lock.Verdict // gets the answer of what it has begun; nil: the answer is err
	later    chan *lock.Verdict // gets the answer of what an earlier Unlock began; nil: likewise
	patience time.Duration      // for that
	err      error
}

// begin gives up the lease, which is valid if it was at the time at, when Unlock was called, and has not
// been ended since. It does not wait.
func (u *unlocking) begin(at time.Time, trace context.Context) {
	l, e := u.lease, u.entry
	var ev event
	ev.Begin(&e.engine.world, &e.engine.Settings)
	ev.Date(at)
	e.mu.Lock()
	r, given := e.lock.Unlock(&ev.Moment, l.in(), trace)
	switch {
	case r != nil:
		u.told = e.engine.newReady()
		r.Await(u.told)
	case !given && l.in().End().Is(lock.Released):
		u.againLocked(&ev.Moment)
	case !given:
		u.err = l.errLocked()
	}
	e.engine.end(&ev, e)
	if given {
		e.engine.Stats.Released.Add(1)
	}
}

// wait returns the answer of the Unlock.
func (u *unlocking) wait() error {
	switch {
	case u.later != nil:
		return u.waitAgain()
	case u.told == nil:
		return u.err
	}
	v := <-u.told
	u.entry.engine.ready.Put(u.told)
	return u.lease.explain(v)
}

// explain makes the error of a verdict for the caller of l; nil if all is well.
func (l *Lease) explain(v *lock.Verdict) error {
	if v == nil {
		return nil
	}
	return l.entry().engine.explain(l.Name(), v)
}

// againLocked is for an Unlock after another.
func (u *unlocking) againLocked(m *lock.Moment) {
	l, later := u.lease, make(chan *lock.Verdict, 1)
	v, answered := u.entry.lock.UnlockAgain(m, l.in(), later)
	if answered {
		u.err = l.explain(v)
		return
	}
	u.later, u.patience = later, validity.Patience(l.in().Hold().Terms.TTL, u.entry.engine.Executor.RoundTrip())
}

// waitAgain is wait of an Unlock after another.
func (u *unlocking) waitAgain() error {
	l, e := u.lease, u.entry
	select {
	case v := <-u.later:
		return l.explain(v)
	case <-time.After(u.patience):
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case v := <-u.later: // it came at that moment
		return l.explain(v)
	default:
	}
	r := l.in().Release() // a release, if it was a downgrade that has been abandoned since
	r.StopWaiting(u.later)
	cause := r.Trouble()
	if cause == nil {
		cause = command.ErrSilent
	}
	return l.explain(lock.Because(lock.Unavailable, cause))
}

// giveBack is Unlock without waiting for the answer: of a lease that was granted to a caller that had left, or is
// part of one that has ended.
func (l *Lease) giveBack() {
	e := l.entry()
	e.do(func(m *lock.Moment) { e.lock.GiveBack(m, l.in()) })
}

// Extend makes the lease last for at least d from now.
func (l *Lease) Extend(ctx context.Context, d time.Duration) error {
	if g := l.several(); g != nil {
		return g.extend(ctx, d)
	}
	e := l.entry()
	sent := time.Now()
	var h *lock.Hold
	var ttl time.Duration
	var why *lock.Verdict
	e.do(func(m *lock.Moment) { h, ttl, why = e.lock.Extend(m, l.in(), validity.TTL(d)) })
	if why != nil {
		return cmp.Or(l.StillHeld(), l.explain(why))
	}
	script := protocol.RenewScript(h.Kind)
	value, err := e.engine.Ask(ctx, l.Name(), Repeatable, script, e.engine.Process.Renew(script, ttl, h))
	if err != nil {
		return err
	}
	codes, ok := value.([]any)
	if !ok || len(codes) != 1 {
		return l.explain(lock.Because(lock.Unavailable, protocol.Unexpected(value)))
	}
	switch codes[0] {
	case int64(protocol.RenewDone):
		e.prolonged(h, sent, ttl)
	case int64(protocol.RenewGone):
		e.notFound(h, lock.LostDeleted)
	case int64(protocol.RenewStolen):
		e.notFound(h, lock.LostStolen)
	default:
		return l.explain(lock.Because(lock.Unavailable, saidInstead(codes[0])))
	}
	if !l.isOn(h) {
		return l.Extend(ctx, d) // as a reader: the answer is about the write side
	}
	return l.heldUntilNow()
}

// isOn reports whether h is what l is a lease on.
func (l *Lease) isOn(h *lock.Hold) bool {
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.in().Hold() == h
}

// heldUntilNow is StillHeld, even for a lease whose end has passed and has not been handled yet.
func (l *Lease) heldUntilNow() error {
	e := l.entry()
	e.do(func(m *lock.Moment) { e.lock.Overslept(m, l.in()) })
	return l.StillHeld()
}

// Ended is the end of a lease, which is announced when no lock is held. Its zero value is none.
type Ended struct {
	lease *Lease
	end   lock.Fact
	mode  lock.Mode
	knows *informed // the contexts and the whole lease that learn of the end; nil: none
}

// informed are those that know of the end of a lease.
type informed struct {
	contexts map[<-chan struct{}]*sharedEnd
	whole    *Lease // that it was a part of; nil: none
	err      error
}

// close closes Done, and takes over what is to be done outside the lock.
func (d *Ended) close(x *more, err error) {
	if x.done != nil {
		close(x.done)
	}
	if x.contexts != nil || x.whole != nil {
		d.knows = &informed{x.contexts, x.whole, err}
		x.contexts = nil
	}
}

// Announce measures the lease and cancels its contexts. No lock may be held: code that listens to the contexts
// runs.
func (d Ended) Announce(eng *Engine) {
	if d.lease == nil {
		return
	}
	d.measure(eng)
	d.tell()
}

// measure measures how long a lease was held. The parts of several locks are measured as a whole,
// and a lease taken by re-entry is a part of the first. No lock may be held.
func (d Ended) measure(eng *Engine) {
	if d.knows != nil && d.knows.whole != nil || d.mode == lock.Reentry {
		return
	}
	eng.Telemetry.Held(d.lease.Subject, endName(d.end), func() time.Duration { return time.Since(eng.Epoch) - d.lease.in().Since() })
}

// tell tells the whole, and cancels the contexts.
func (d Ended) tell() {
	k := d.knows
	if k == nil {
		return
	}
	if k.whole != nil {
		k.whole.few().group.partEnded(d.lease, k.err)
	}
	for _, s := range k.contexts {
		s.end(k.err)
	}
}

func (eng *Engine) announceAll(all []Ended) {
	for _, d := range all {
		d.Announce(eng)
	}
}

// endName names the end of a lease for metrics.
func endName(f lock.Fact) string {
	switch f {
	case lock.Released:
		return "released"
	case lock.MaxHoldOver:
		return "max_hold"
	case lock.Closed:
		return "closed"
	}
	return "lost"
}
