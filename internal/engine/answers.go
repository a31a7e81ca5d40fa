package engine

import "slices"

// answers are what the calls of Unlock learn of a release. The call that began it waits on caller, for as long as
// patience allows; the release itself goes on. Later calls wait in later. It is guarded by entry.mu.
type answers struct {
	caller    chan *Verdict   // of the Unlock that began it; nil: none waits
	verdict   *Verdict        // of the whole release, until an Unlock asks again; once settled
	later     []chan *Verdict // for calls of Unlock after one that could not wait longer
	told      bool            // the Unlock that began it has its answer
	confirmed bool            // an Unlock has returned nil
}

// tell ends the wait of the Unlock that began the release.
func (a *answers) tell(v *Verdict) {
	if a.told {
		return
	}
	a.told, a.confirmed = true, v == nil
	if a.caller != nil {
		a.caller <- v // buffered for it
	}
}

// settle ends the wait of all with the verdict of the release.
func (a *answers) settle(v *Verdict) {
	a.verdict = v
	a.tell(v)
	for _, c := range a.later {
		c <- a.again()
	}
	a.later = nil
}

// again is the answer to a repeated Unlock. One call gets the success, the others ErrNotHeld.
func (a *answers) again() *Verdict {
	if a.confirmed {
		return because(NotHeld)
	}
	a.confirmed = a.verdict == nil
	return a.verdict
}

// stopWaiting is for a repeated Unlock that does not wait any longer: a later success is for another one. It returns
// the answer if it came at that moment.
func (a *answers) stopWaiting(c chan *Verdict) (answer *Verdict, ok bool) {
	select {
	case answer = <-c:
		return answer, true
	default:
		a.later = slices.DeleteFunc(a.later, func(x chan *Verdict) bool { return x == c })
		return nil, false
	}
}
