package model

import "fmt"

// steps returns everything that can happen in s.
func (s handover) steps(b bug) (all []step[handover]) {
	add := func(what string, i int, change func(*handover, *process)) {
		to := s
		change(&to, &to.p[i])
		all = append(all, step[handover]{fmt.Sprintf("%s %d", what, i), to})
	}
	fault := func(what string, i int, change func(*handover, *process)) {
		if s.faults > 0 {
			add(what, i, func(s *handover, p *process) { s.faults--; change(s, p) })
		}
	}
	for i, p := range s.p {
		n := int8(i)
		// Redis and the network, whatever becomes of the process.
		if p.acquire == sent {
			add("acquire runs", i, func(s *handover, p *process) { s.runAcquire(n, b) })
		}
		if p.release {
			add("release runs", i, func(s *handover, p *process) { s.runRelease(n, false, b) })
			fault("open release runs", i, func(s *handover, p *process) { s.runRelease(n, true, b) })
			if s.owner == n {
				fault("release runs, passing over the first", i, func(s *handover, p *process) {
					s.leave(n)
					s.passOver(b)
					s.runRelease(n, false, b)
				})
			}
		}
		if p.keep {
			add("keep runs", i, func(s *handover, p *process) {
				p.keep = false
				if s.place(n) >= 0 || b == "a keep makes a place" {
					s.stand(n, false)
				}
			})
		}
		if p.message {
			fault("message is lost", i, func(s *handover, p *process) { p.message, p.messaged = false, 0 })
		}
		if p.stopped {
			add("goes on", i, func(s *handover, p *process) { p.stopped = false })
		}
		if !s.live(i) {
			continue
		}
		if p.message {
			add("hears", i, func(s *handover, p *process) { p.hear(b) })
		}
		switch p.acquire {
		case granted, refused:
			add("is answered", i, func(s *handover, p *process) { p.answer(b) })
		}
		switch p.phase {
		case idle:
			if i > 1 && s.p[i-1].phase == idle {
				break // they are alike: one order of them is enough
			}
			add("comes", i, func(s *handover, p *process) { p.phase = waiting; p.ask() })
		case waiting:
			if p.acquire == none && b != "nobody polls" {
				add("polls", i, func(s *handover, p *process) { p.ask() })
			}
			if p.stood && !p.keep {
				add("keeps", i, func(s *handover, p *process) { p.keep = true })
			}
			fault("cancels", i, func(s *handover, p *process) {
				p.giveUp(b)
				p.release = b != "who cancels does not leave"
			})
		case holding:
			add("unlocks", i, func(s *handover, p *process) { p.giveUp(b) })
		}
		if p.phase == waiting || p.phase == holding {
			fault("stops", i, func(s *handover, p *process) { p.stopped = true })
			fault("dies", i, func(s *handover, p *process) {
				p.phase, p.deadline, p.message, p.messaged = dead, 0, false, 0
			})
		}
	}
	if s.owner < 0 && s.length > 0 && s.faults > 0 { // counted as a fault: otherwise there are 17 million states
		to := s
		to.faults--
		to.handOver(b)
		all = append(all, step[handover]{"somebody asks once, and lets the first in", to})
	}
	to := s
	to.tick()
	return append(all, step[handover]{"tick", to})
}

// wrong says which promise s breaks, if any.
func (s *handover) wrong() string {
	trusted := 0
	for i, p := range s.p {
		if p.phase == holding && p.deadline > 0 {
			trusted++
		}
		quiet := p.acquire != sent && !p.release && !p.keep
		if p.phase == gone && quiet && (s.owner == int8(i) || s.place(int8(i)) >= 0) {
			return fmt.Sprintf("process %d has left a trace", i)
		}
	}
	if trusted > 1 {
		return "two processes trust their leases"
	}
	for n := 1; n < int(s.length); n++ {
		a, z := s.queue[n-1], s.queue[n]
		if s.p[a].phase == waiting && s.p[z].phase == waiting && s.came[a] > s.came[z] && !(s.lapsed[a] && s.lapsed[z]) {
			return "the queue is not in the order of arrival"
		}
	}
	return ""
}

// settle lets everything that is on its way arrive and every process act, without further
// trouble and with time passing; it says who was never served, or that the lock is
// taken by no process forever.
func (s handover) settle(b bug) string {
	const enough = 12 // ticks: two claims of the stopped, a lease, and what is on its way
	owed := s.p
	for range enough {
		for changed := true; changed; {
			changed = false
			for i := range s.p {
				p, n := &s.p[i], int8(i)
				before := s
				if p.acquire == sent {
					s.runAcquire(n, b)
				}
				if p.release {
					s.runRelease(n, false, b)
				}
				p.keep = false
				if s.live(i) {
					if p.message {
						p.hear(b)
					}
					if p.acquire == granted || p.acquire == refused {
						p.answer(b)
					}
					if p.phase == holding {
						p.giveUp(b)
					}
				}
				changed = changed || s != before
			}
		}
		for i := range s.p {
			if p := &s.p[i]; s.live(i) && p.phase == waiting && p.acquire == none && b != "nobody polls" {
				p.ask()
			}
		}
		s.tick()
	}
	for i := range owed {
		if s.live(i) && owed[i].phase == waiting && s.p[i].phase == waiting {
			return fmt.Sprintf("process %d waits for ever", i)
		}
	}
	if s.owner >= 0 {
		return fmt.Sprintf("the lock stays with process %d", s.owner)
	}
	return ""
}

// broken says which promise s breaks, now or later.
func (s handover) broken(b bug) string {
	if what := s.wrong(); what != "" {
		return what
	}
	return s.settle(b)
}
