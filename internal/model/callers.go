package model

// What the process does for its callers.

// waiting returns how many callers wait.
func (e *entry) waiting() (n int) {
	for _, c := range e.callers {
		if c == parked {
			n++
		}
	}
	return n
}

// step decides what the process does next.
func (e *entry) step(b bug) {
	if e.waiting() == 0 {
		e.ask, e.yielding, e.armed, e.listening, e.turn = false, false, false, false, false
		return
	}
	switch {
	case e.held || !e.ask:
	case e.orphan:
		e.orphan = false // the request is that of the next caller now
	case e.request == none && e.release == noRelease:
		e.rude = e.turn
		e.request = sent
		e.ask, e.yielding, e.armed = false, false, false
	}
	if !e.held && e.request == none && b != "nobody polls" && !(e.yielding && b == "who gives way has no timer") {
		e.armed = true
	}
}

func (e *entry) come(i int, b bug) {
	e.second = i == 1 && e.waiting() == 0
	e.callers[i] = parked
	e.ask = e.ask || e.waiting() == 1
	e.step(b)
}

func (e *entry) cancel(i int, b bug) {
	e.callers[i] = outside
	e.second = e.callers[1] == parked
	e.abandon(b)
	e.step(b)
}

// abandon sees to a claim that no caller waits for any more.
func (e *entry) abandon(b bug) {
	switch {
	case e.waiting() > 0:
	case e.request != none:
		e.orphan = b != "a request on its way is forgotten"
	case e.queued && b != "who leaves keeps its place":
		e.giveUp()
	}
}

// giveUp releases the claim.
func (e *entry) giveUp() {
	e.queued, e.noticed, e.release = false, false, ofClaim
	e.ask = true
	if e.message == ours {
		e.message = old
	}
}

// serve lets the first caller in.
func (e *entry) serve() {
	first := 0
	if e.callers[0] != parked || e.second && e.callers[1] == parked {
		first = 1
	}
	e.callers[first] = inside
	e.second = first == 0
}

// obtain is the grant of the claim.
func (e *entry) obtain() {
	e.held, e.queued, e.noticed = true, false, false
	e.over, e.demand, e.passes = false, demandUnknown, 0
	e.serve()
}

// answer is the reply to the request.
func (e *entry) answer(b bug) {
	got := e.request
	e.request = none
	switch {
	case e.waiting() == 0 && !e.orphan:
	case e.orphan:
		e.orphan = false
		e.giveUp()
	case got == granted:
		if e.message == ours {
			e.message = old // for what is a hold now
		}
		e.obtain()
	case e.noticed:
		e.obtain()
	default:
		e.queued = true
		if e.plain && !e.listening {
			e.listening = true
			e.ask = e.ask || !e.yielding // for what was said before
		}
		if !e.yielding {
			e.armed = true
		}
	}
	e.step(b)
}

// hear is a grant message.
func (e *entry) hear(b bug) {
	m := e.message
	e.message = noMail
	switch {
	case m == old && b != "a message is taken for a later claim", e.waiting() == 0, e.held:
	case e.request != none && b != "a message is taken while a request is on its way":
		e.noticed = true
	default:
		e.obtain()
		if e.they == waits {
			e.demand = demandKnown
		}
	}
	e.step(b)
}

func (e *entry) unlock(i int, b bug) {
	e.callers[i] = outside
	if e.waiting() > 0 && !(e.demand == demandKnown && e.over) {
		if e.they == waits && e.over && e.question == noQuestion {
			e.passes++
		}
		if e.demand == demandUnknown && e.over && b != "nobody asks whether others wait" {
			e.question, e.demand = asked, demandAsked
		}
		e.serve()
		return
	}
	e.held, e.question = false, noQuestion // its answer would be about a hold that has ended
	e.release = ofLock
	e.ask = e.ask || e.waiting() > 0
	e.step(b)
}

// lose is the end of the lock in Redis while the process holds it.
func (e *entry) lose(b bug) {
	for i, c := range e.callers {
		if c == inside {
			e.callers[i] = outside
		}
	}
	e.owner, e.held, e.question = nobody, false, noQuestion
	e.ask = e.ask || e.waiting() > 0
	e.step(b)
}

// told is the reply to the release.
func (e *entry) told(b bug) {
	others := e.release == heard
	e.release = noRelease
	e.turn = others && e.waiting() > 0
	if e.turn && b != "nobody gives way" {
		e.ask, e.yielding, e.armed = false, true, b != "who gives way has no timer"
	}
	e.step(b)
}

func (e *entry) answerQuestion(b bug) {
	if e.question == answeredYes && b != "the answer is forgotten" {
		e.demand = demandKnown
	} else {
		e.demand, e.over = demandUnknown, false
	}
	e.question = noQuestion
}

func (e *entry) hearEcho(b bug) {
	e.echo = false
	if e.listening && (!e.yielding || b == "who gives way hears its own release") {
		e.ask = true
		e.step(b)
	}
}

func (e *entry) fire(b bug) {
	e.yielding, e.armed, e.ask, e.turn = false, false, true, false
	e.step(b)
}

func (e *entry) close(b bug) {
	e.closed = true
	e.callers = [2]caller{}
	e.abandon(b)
	if e.held {
		e.held, e.question = false, noQuestion
		if b != "Close leaves the lock" {
			e.release = ofLock
		}
	}
	e.step(b)
}
