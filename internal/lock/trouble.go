package lock

import "time"

// latest is what the latest answers of Redis to the requests of a lock have said: nothing yet, that another owner
// has the lock, or no verdict. It decides what a caller learns whose context ends.
type latest struct {
	last  *trouble      // nil: nothing since no caller waited, or since a grant; refusal: another owner has the lock
	since time.Duration // the last moment at which Redis answered, or got the first request, after Settings.Epoch; 0: no request since a hold
}

// refusal is the last verdict of Redis if another owner stands in the way.
var refusal = new(trouble)

func (k *latest) refused() bool { return k.last == refusal }

// trouble is what requests have met that bring no verdict; nil: the last one brought one.
func (k *latest) trouble() *trouble {
	if k.refused() {
		return nil
	}
	return k.last
}

// inTrouble is trouble, which begins with cause if there is none.
func (k *latest) inTrouble(m *Moment, cause error) *trouble {
	if k.trouble() == nil {
		k.last = &trouble{cause: cause}
	}
	return k.last
}

// untroubled is called when a request has brought a verdict.
func (k *latest) untroubled() {
	if !k.refused() {
		k.last = nil
	}
}

// asked is called with the time of each request, after Settings.Epoch.
func (k *latest) asked(at time.Duration) {
	if k.since == 0 {
		k.since = at
	}
}

// answered is called with the end of each request.
func (lk *Lock) answered(m *Moment, r *Reply) {
	if r.Outcome == Answered {
		lk.latest.since = max(lk.latest.since, m.ageOf(r.Sent)) // Redis was there at some time since
	}
}

// noVerdict is the verdict for w's caller if its context ended, for these causes, before Redis granted the
// lock.
func (lk *Lock) noVerdict(m *Moment, causes []error, w *Waiter) *Verdict {
	switch k := &lk.latest; {
	case !lk.admits(w.Kind):
		return Because(NotAcquired, append(causes, HeldHere)...)
	case lk.otherInTheWay(w):
	case k.trouble() != nil:
		return Because(Unavailable, append(causes, k.trouble().cause)...)
	case k.since != 0 && m.Age()-k.since >= Silence:
		return Because(Unavailable, append(causes, m.world.Silence())...)
	}
	return Because(NotAcquired, causes...)
}

// otherInTheWay reports whether another owner is known to stand in w's way: in this process, or by what Redis said last.
func (lk *Lock) otherInTheWay(w *Waiter) bool {
	front, k := lk.waiters.head, &lk.latest
	switch {
	case !lk.admits(w.Kind):
		return true
	case k.trouble() != nil:
		return false
	}
	return k.refused() || lk.bidOf(w).standing() || front != nil && lk.bidOf(front).standing()
}

// Silence is how long Redis may answer nothing before the error of a caller whose context ends is an outage
// instead of a busy lock.
const Silence = 50 * time.Millisecond

// trouble is what is remembered while requests bring no verdict.
type trouble struct {
	cause    error // of the last one
	requests int   // in a row
	pauses   pauses
	began    time.Time // the latest pause
	barred   time.Time // when Redis first did not let the client; zero: it did not say so
}

// troubled records a request that brought no verdict.
func (lk *Lock) troubled(m *Moment, cause error) {
	t := lk.latest.inTrouble(m, cause)
	t.cause = cause
	t.requests++
	m.effects().Counts.Troubles++
}

// trouble is for a request that brought no verdict.
func (lk *Lock) trouble(m *Moment, t *Try, current bool, r *Reply) {
	if !current {
		// Overdue before. Another copy may be on its way; if none is allowed any more,
		// this end of one is what the lock was waiting for.
		if t.Hold.bid.current == nil {
			lk.pause(m, t.Sent)
		}
		return
	}
	lk.troubled(m, r.Cause)
	if lk.latest.trouble().requests == 1 && t.carrier != inJoin && (r.Outcome == Unknown || r.Outcome == NotSent) && m.Now().Sub(t.Sent) < t.Patience/4 {
		// Most likely a connection that died in the pool. The same claim again, at once. Places are not
		// urgent, and while the first waiter is answered each request for some can be the first to fail.
		lk.missed.add(missedLock | missedPlaces | missedGrants)
		return
	}
	lk.refuse(m, t.n, Unavailable, r.Cause)
	lk.waitOn(m, r.Cause)
	lk.pause(m, t.Sent)
}

// waitOn reports why callers go on waiting, of whom some may have been refused.
func (lk *Lock) waitOn(m *Moment, cause error) {
	if lk.waiters.head != nil {
		m.effects().Waits = Wait{lk, cause}
	}
}

// hopeless fails all waiters, because another request would bring the same answer. If the answer may be
// about the counter of tokens, it fails only waiters that want tokens. The answer to a sweep may be about another
// of its locks, so it fails only the waiters that it was sent for. Later waiters send a request of their own.
func (lk *Lock) hopeless(m *Moment, t *Try, f Fact, cause error) {
	lk.latest.untroubled()
	if f == Unavailable {
		m.effects().Counts.Troubles++
	}
	lk.missed.add(missedLock)
	if t.carrier == inSweep {
		lk.refuse(m, t.n, f, cause)
		return
	}
	lk.failThose(m, func(w *Waiter) bool { return w.Terms.Fencing == t.Hold.Terms.Fencing }, f, cause)
}

// unacked undoes a grant that too few replicas have acknowledged.
func (lk *Lock) unacked(m *Moment, h *Hold, r *Reply) {
	lk.endBid(m, h)
	lk.troubled(m, r.Cause)
	if r.Hopeless != nil { // no WAIT, or no right to it
		lk.fail(m, Unavailable, r.Cause)
	}
	lk.refuse(m, lk.tries+1, Unavailable, r.Cause)
	lk.waitOn(m, r.Cause)
	lk.giveUp(m, h, nil)
	lk.pause(m, r.Sent)
}

// Readmission is for how long requests are repeated if Redis has let the client in before and does not any more
// (NOAUTH, WRONGPASS, NOPERM): a password or a list of rights may be about to change. It is the default lease,
// which is how long a holder would ride that out.
const Readmission = 30 * time.Second

// barredForLong is called when Redis does not let the client, and says so. It reports whether that has lasted
// for so long that it is final.
func (lk *Lock) barredForLong(m *Moment, cause error) bool {
	t, now := lk.latest.inTrouble(m, cause), m.Now()
	if t.barred.IsZero() {
		t.barred = now
	}
	return now.Sub(t.barred) >= m.set.Readmission
}

// pause asks again after a pause, which grows while the trouble lasts. A request that was sent
// before the pause began has failed together with the one it is for, as those of many fair waiters do.
func (lk *Lock) pause(m *Moment, sent time.Time) {
	p := new(pauses) // no trouble any more: a request ends late, and later ones were answered
	if t := lk.latest.trouble(); t != nil {
		if lk.alarm == alarmPause && sent.Before(t.began) {
			return
		}
		p, t.began = &t.pauses, m.Now()
	}
	lk.arm(m, alarmPause, p.next(m))
	lk.missed.add(missedPlaces)
}

// NextPause is how long, without the random part, the lock would pause if another request brought no verdict; 0: there is no trouble.
func (lk *Lock) NextPause() time.Duration {
	if t := lk.latest.trouble(); t != nil {
		return t.pauses.base()
	}
	return 0
}

// pauses counts the pauses between repeated requests. They grow from 10 ms to a second; up to half of each is taken off or added.
type pauses uint8

func (p pauses) base() time.Duration { return min(10*time.Millisecond<<min(p, 10), time.Second) }

// next returns the next pause.
func (p *pauses) next(m *Moment) time.Duration {
	d := p.base()
	*p = min(*p+1, 10)
	return d/2 + time.Duration(m.set.Chance(int64(d)+1))
}
