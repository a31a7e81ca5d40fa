package lock

import "slices"

// answers are what the calls of Unlock learn of a release. The call that began it waits as caller, for as long as
// patience allows; the release itself goes on. Later calls wait in later. Only the shell knows what stands for a call.
type answers struct {
	caller    any      // the Unlock that began it; nil: none waits
	verdict   *Verdict // of the whole release, until an Unlock asks again; once settled
	later     []any    // calls of Unlock after one that could not wait longer
	told      bool     // the Unlock that began it has its answer
	confirmed bool     // an Unlock has returned nil
}

// Await has the Unlock that began the release get its answer as caller.
func (a *answers) Await(caller any) { a.caller = caller }

// tell ends the wait of the Unlock that began the release.
func (a *answers) tell(m *Moment, v *Verdict) {
	if a.told {
		return
	}
	a.told, a.confirmed = true, v == nil
	if a.caller != nil {
		m.answer(a.caller, v)
	}
}

// end ends the wait of all with the verdict of the release.
func (a *answers) end(m *Moment, v *Verdict) {
	a.verdict = v
	a.tell(m, v)
	for _, c := range a.later {
		m.answer(c, a.repeat())
	}
	a.later = nil
}

// repeat is the answer to a repeated Unlock. One call gets the success, the others NotHeld.
func (a *answers) repeat() *Verdict {
	if a.confirmed {
		return Because(NotHeld)
	}
	a.confirmed = a.verdict == nil
	return a.verdict
}

// StopWaiting is for a repeated Unlock that does not wait any longer: a later success is for another one.
func (a *answers) StopWaiting(c any) {
	a.later = slices.DeleteFunc(a.later, func(x any) bool { return x == c })
}
