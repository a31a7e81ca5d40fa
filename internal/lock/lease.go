package lock

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/validity"
)

// Lease is a caller's right to a lock, from the grant until Unlock or loss. The shell's type of it, and the one that users see,
// are made of this one: so its fields are of this package. A lease that the shell makes is of several locks, and no Lock knows it.
type Lease struct {
	_     noCopy
	self  *Lease // the lease that was made: a copy of it acts on that one; nil: a zero value
	lock  *Lock  // nil: of several locks
	name  string
	class any // of the name, for metrics; carried only
	token uint64
	since time.Duration // when it was granted, after Settings.Epoch
	kind  Kind
	mode  Mode

	shell   *Shell    // the shell's part; nil: none
	hold    *Hold     // what it is a lease on; a downgrade makes it another
	ended   *Verdict  // why it ended; nil: it is held
	next    *Lease    // on the same hold
	prev    *Lease    // likewise
	limit   *Limit    // of the hold, by WithMaxHold; nil: none
	release *Repeated // begun by its Unlock; nil: other leases kept the lock, or it was passed on, or the release is spent
}

// Shell is what the shell has its part of a lease begin with, so that a lease has no more than a pointer to it.
type Shell struct{ Of any } // the part

// noCopy has go vet report copies of what it is a field of.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// Several makes a lease of several locks.
func Several(by By, shell *Shell) *Lease {
	l := &Lease{name: by.Name, class: by.Class, kind: by.Kind, mode: Reentry, shell: shell}
	l.self = l
	return l
}

// Self is the lease that was made, of which l may be a copy; nil: l is a zero value.
func (l *Lease) Self() *Lease { return l.self }

// Of is the lock; nil: it is a lease of several.
func (l *Lease) Of() *Lock { return l.lock }

// Name is the name of the lock as the caller has given it.
func (l *Lease) Name() string { return l.name }

// Class is what its caller asked with.
func (l *Lease) Class() any { return l.class }

// Token is the fencing token; 0: none.
func (l *Lease) Token() uint64 { return l.token }

// Kind is what the caller has asked for.
func (l *Lease) Kind() Kind { return l.kind }

// Mode is how it came about.
func (l *Lease) Mode() Mode { return l.mode }

// SetMode is for a lease of several locks, and so is SetSince.
func (l *Lease) SetMode(m Mode)               { l.mode = m }
func (l *Lease) SetSince(since time.Duration) { l.since = since }

// Since is when it was granted, after Settings.Epoch.
func (l *Lease) Since() time.Duration { return l.since }

// Shell is the shell's part; nil: none.
func (l *Lease) Shell() *Shell { return l.shell }

// SetShell changes it.
func (l *Lease) SetShell(x *Shell) { l.shell = x }

// Hold is what it is, or was, a lease on.
func (l *Lease) Hold() *Hold { return l.hold }

// Next is another lease on the same hold; nil: there is none behind.
func (l *Lease) Next() *Lease { return l.next }

// Limit is the end by WithMaxHold; nil: none.
func (l *Lease) Limit() *Limit { return l.limit }

// Release is what its Unlock has begun; nil: nothing, or nothing is left to say of it.
func (l *Lease) Release() *Repeated { return l.release }

// End is why it ended; nil: it is held.
func (l *Lease) End() *Verdict { return l.ended }

// Deadline is until when it is trusted.
func (l *Lease) Deadline() time.Time {
	if l.limit != nil && l.limit.At.Before(l.hold.Deadline) {
		return l.limit.At
	}
	return l.hold.Deadline
}

// Valid reports whether it is held and its deadline has not come, by both clocks.
func (l *Lease) Valid(now time.Time) bool {
	return l.ended == nil && validity.Valid(now, l.Deadline())
}

// Held reports whether it is held. One whose end has passed is not, even if its timers have not run yet.
func (l *Lease) Held(now time.Time) bool { return l.ended == nil && now.Before(l.Deadline()) }

// EndsByItself reports whether an option ends it.
func (l *Lease) EndsByItself() bool { return l.hold.Terms.Fixed || l.hold.Terms.MaxHold > 0 }

// EndWasSet reports whether it has come to the end that WithMaxHold or WithFixedLease set.
func (l *Lease) EndWasSet(now time.Time) bool {
	return l.ended.Is(MaxHoldOver) || l.hold.Terms.Fixed && l.ended.Is(LeaseLost) && !l.Deadline().After(now)
}

// grant adds a lease to h, granted at that time after Settings.Epoch.
func (h *Hold) grant(by *By, mode Mode, at time.Duration) *Lease {
	l := &Lease{
		lock: h.Lock, name: by.Name, class: by.Class, kind: by.Kind, mode: mode, token: h.token, since: at,
		hold: h, limit: h.Limit,
	}
	l.self = l
	if mode != Reentry && (h.leases == nil || h.watch == toldWanted) {
		h.watch = unwatched // what was before is nothing to this caller
	}
	h.add(l)
	return l
}

// add puts a lease on h.
func (h *Hold) add(l *Lease) {
	l.next = h.leases
	if l.next != nil {
		l.next.prev = l
	}
	h.leases = l
}

// drop takes a lease that has ended off h and reports whether it was the last. It does
// so once.
func (h *Hold) drop(l *Lease) (last bool) {
	switch {
	case h.leases == l:
		h.leases = l.next
	case l.prev != nil:
		l.prev.next = l.next
	default:
		return false
	}
	if l.next != nil {
		l.next.prev = l.prev
	}
	l.next, l.prev = nil, nil
	return h.leases == nil
}

// Unlock is the event that a lease is given up, which is valid if it was at the moment, and has not been ended since. If not, it
// reports false: then it has ended, by an Unlock before this one or early. begun is the release or downgrade that this begins; nil:
// it begins none.
func (lk *Lock) Unlock(m *Moment, l *Lease, trace any) (begun *Repeated, given bool) {
	l.hold.unlocked = true
	if l.ended != nil || !m.Now().Before(l.Deadline()) {
		if l.ended == nil {
			lk.overslept(m, l.hold)
		}
		if !l.ended.Is(Released) {
			lk.dropEnded(m, l)
		}
		return nil, false
	}
	l.ended, m.Gone = givenUp, l
	l.release = lk.dropGivenUp(m, l, trace)
	if r := l.release; r != nil {
		r.lease = l
	}
	return l.release, true
}

// GiveBack is Unlock without a caller that waits: of a lease that was granted to a caller that had left, or is
// part of one that has ended.
func (lk *Lock) GiveBack(m *Moment, l *Lease) {
	if l.ended != nil {
		lk.dropEnded(m, l)
		return
	}
	l.ended = givenUp
	m.end(Ended{Lock: lk, Lease: l, Leases: []*Lease{l}, How: GivenBack})
	if r := lk.dropGivenUp(m, l, nil); r != nil {
		r.lease = l
	}
}

// dropGivenUp takes a lease that has been given up off its hold. It returns the release or
// downgrade that this begins, nil if it begins none.
func (lk *Lock) dropGivenUp(m *Moment, l *Lease, trace any) *Repeated {
	h := l.hold
	switch last := h.drop(l); {
	case last:
		if r := lk.pass(m, h, trace); r != nil {
			return &r.Repeated
		}
	case h.phase == held && h.isLeftToReaders():
		d := lk.downgrade(m, h, trace)
		lk.missed.add(missedLock)
		lk.step(m)
		return &d.Repeated
	}
	return nil
}

// dropEnded takes a lease that ended early off its hold, and with the last one releases what may still be in
// Redis: no other owner could get the lock before the TTL ends.
func (lk *Lock) dropEnded(m *Moment, l *Lease) {
	h := l.hold
	if h.drop(l) && h.phase == owed {
		lk.settleOwed(m, h, l)
	}
}

// UnlockAgain is the event of an Unlock after another: if the first one began a release, this one waits
// for its answer as well. A release that was given up is begun again. The answer is for to if it is not there yet.
func (lk *Lock) UnlockAgain(m *Moment, l *Lease, to any) (v *Verdict, answered bool) {
	r := l.release
	if r == nil {
		return Because(NotHeld), true
	}
	if x, ok := r.request.(*Release); ok && r.settled && r.verdict.Is(Unavailable) {
		x.restart(m)
	}
	if r.settled {
		return r.answers.repeat(), true
	}
	r.later = append(r.later, to)
	r.hasten(m)
	return nil, false
}

// Lapse is the event that a lease that is a part ends with the whole, whose end WithMaxHold has set if limited, else
// WithFixedLease: as EndWasSet says, if no other lease keeps its hold. It reports whether the lease has ended.
func (lk *Lock) Lapse(m *Moment, l *Lease, limited bool) (over bool) {
	h := l.hold
	alone := h.leases == l && l.next == nil
	switch {
	case l.ended != nil || !alone:
	case limited:
		lk.endByLimit(m, h)
	default:
		lk.lose(m, h, LostDeadline)
		lk.step(m)
	}
	return l.ended != nil // now, or because it had come to its own end
}

// Overslept is the event that the end of a lease has passed, if it has, and was not handled yet.
func (lk *Lock) Overslept(m *Moment, l *Lease) {
	if l.ended == nil && !m.Now().Before(l.Deadline()) {
		lk.overslept(m, l.hold)
	}
}
