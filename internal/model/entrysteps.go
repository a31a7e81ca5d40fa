package model

import "fmt"

// steps returns everything that can happen in e.
func (e entry) steps(b bug) (all []step[entry]) {
	add := func(what string, change func(*entry)) {
		to := e
		change(&to)
		all = append(all, step[entry]{what, to})
	}
	for i, c := range e.callers {
		switch c {
		case outside:
			if !e.closed {
				add(fmt.Sprintf("caller %d comes", i), func(e *entry) { e.come(i, b) })
			}
		case parked:
			add(fmt.Sprintf("caller %d leaves", i), func(e *entry) { e.cancel(i, b) })
		case inside:
			add(fmt.Sprintf("caller %d unlocks", i), func(e *entry) { e.unlock(i, b) })
		}
	}
	for _, s := range e.underWay(b) {
		add(s.what, s.to)
	}
	switch e.they {
	case away:
		add("they come", (*entry).theyAsk)
	case waits:
		add("they die", func(e *entry) { e.they = died })
	case holds:
		add("they unlock", (*entry).theyUnlock)
		add("they die", func(e *entry) { e.they = died })
	}
	if e.held && !e.over {
		add("the slice ends", func(e *entry) { e.over = true })
	}
	if e.held {
		add("the lease is lost", func(e *entry) { e.lose(b) })
	}
	if !e.closed {
		add("close", func(e *entry) { e.close(b) })
	}
	return all
}

// underWay returns what will happen by itself, in the order in which settle lets it.
func (e *entry) underWay(b bug) (all []step[func(*entry)]) {
	add := func(possible bool, what string, change func(*entry)) {
		if possible {
			all = append(all, step[func(*entry)]{what, change})
		}
	}
	add(e.ring, "Redisson's is told", func(e *entry) {
		e.ring = false
		if e.they == waits && e.owner == nobody {
			e.owner, e.they = them, holds
		}
	})
	add(e.request == sent, "the request runs", (*entry).runRequest)
	add(e.request > sent, "the request is answered", func(e *entry) { e.answer(b) })
	add(e.release == ofLock || e.release == ofClaim, "the release runs", (*entry).runRelease)
	add(e.release > ofClaim, "the release is answered", func(e *entry) { e.told(b) })
	add(e.question == asked, "the question runs", func(e *entry) {
		e.question = answeredNo
		if e.they == waits {
			e.question = answeredYes
		}
	})
	add(e.question > asked, "the question is answered", func(e *entry) { e.answerQuestion(b) })
	add(e.message != noMail, "a grant is heard", func(e *entry) { e.hear(b) })
	add(e.echo, "a release is heard", func(e *entry) { e.hearEcho(b) })
	add(e.owner == them && e.they == died, "the lock of the dead expires", func(e *entry) { e.owner = nobody })
	add(e.they == waits && e.owner == nobody, "they ask again", (*entry).theyAsk)
	add(e.armed, "the timer fires", func(e *entry) { e.fire(b) })
	return all
}

// broken says which promise e breaks, if any.
func (e entry) broken(b bug) string {
	in := 0
	for _, c := range e.callers {
		if c == inside {
			in++
		}
	}
	switch {
	case in > 1:
		return "two callers are inside"
	case e.held && e.owner != us:
		return "the lock is held by two"
	case e.waiting() > 0 && !e.held && e.request == none && !e.armed:
		return "nothing will wake who waits"
	case e.passes > 2:
		return "they wait for more than two slices"
	case e.rude:
		return "it was their turn"
	}
	return e.settle(b)
}

// settle lets everything happen that is under way, and the caller inside unlock; it says
// who was not served, and what was left behind.
func (e entry) settle(b bug) string {
	const enough = 40 // things that happen
	for range enough {
		switch all := e.underWay(b); {
		case e.callers[0] == inside:
			e.unlock(0, b)
		case e.callers[1] == inside:
			e.unlock(1, b)
		case e.they == holds:
			e.theyUnlock()
		case len(all) > 0:
			all[0].to(&e)
		}
	}
	switch {
	case e.waiting() > 0:
		return "a caller waits for ever"
	case e.they == waits:
		return "they wait for ever"
	case e.owner != nobody:
		return "the lock is never free"
	case e.queue[0] == us || e.queue[1] == us:
		return "a place is left behind"
	case e.request != none || e.release != noRelease || e.armed:
		return "it never comes to rest"
	}
	return ""
}
