package model

const (
	processes = 3
	claim     = 1 // ticks that a grant to another process lasts
	lease     = 2 // ticks that an acquire lasts
	patience  = 1 // ticks that a silent process keeps its place
)

type phase uint8

const (
	idle    phase = iota
	waiting       // a claim: asked for, perhaps granted
	holding       // trusts its lease until its deadline
	gone          // gave it up or back; the owner id is never used again
	dead          // killed, and Redis knows: its connections are closed
)

// request is where an acquire is.
type request uint8

const (
	none    request = iota
	sent            // on its way, at any time
	granted         // executed, the reply is on its way
	refused
)

// process is what one process knows, and what is on its way from and to it.
type process struct {
	phase    phase
	stopped  bool    // SIGSTOP: it does nothing, its connections stay
	deadline int8    // ticks until it stops trusting its lease
	acquire  request // only the latest: that copies do no harm is the owner id's doing
	age      int8    // ticks since the acquire was sent
	stood    bool    // has been told that it stands in the queue
	release  bool    // a release is on its way
	buries   bool    // which leaves a tombstone: an acquire is not answered
	keep     bool    // a keep is on its way
	message  bool    // a grant is on its way
	messaged int8    // ticks since it was given
}

// handover is one lock, three processes with one waiter each, messages that take their time or
// are lost, processes that stop, go on or die. The real one is lock_acquire.lua,
// lock_release.lua and the files try.go, inbox.go, release.go.
//
// Time is counted in ticks, the same for all: what a clock that was set does is covered
// by validity.Grant, which turns it into a message that is asked about.
type handover struct {
	owner  int8 // of the lock in Redis, -1: it is free
	ttl    int8 // ticks until it expires
	queue  [processes]int8
	length int8
	kept   [processes]int8 // ticks that a place is kept, by process
	buried [processes]bool
	came   [processes]int8 // who stood in the queue first, second, ...; 0: not yet
	comers int8
	lapsed [processes]bool // was passed over in the queue, or let its claim end
	p      [processes]process
	faults int8 // that may still happen
}

// start is a lock that process 0 holds.
func start(faults int8) handover {
	s := handover{owner: 0, ttl: lease, faults: faults}
	s.p[0] = process{phase: holding, deadline: lease}
	return s
}

// live reports whether process i can do anything.
func (s *handover) live(i int) bool { return s.p[i].phase != dead && !s.p[i].stopped }

func (s *handover) place(i int8) int {
	for n := range int(s.length) {
		if s.queue[n] == i {
			return n
		}
	}
	return -1
}

func (s *handover) leave(i int8) {
	n := s.place(i)
	if n < 0 {
		return
	}
	copy(s.queue[n:], s.queue[n+1:])
	s.length--
	s.queue[s.length] = 0
	s.kept[i] = 0
}

// stand puts i into the queue, or keeps its place; one that stood there before and was
// dropped returns to the front.
func (s *handover) stand(i int8, front bool) {
	if s.place(i) < 0 {
		if front {
			copy(s.queue[1:], s.queue[:s.length])
			s.queue[0] = i
		} else {
			s.queue[s.length] = i
		}
		s.length++
		if s.came[i] == 0 {
			s.comers++
			s.came[i] = s.comers
		}
	}
	s.kept[i] = patience
}

// first removes those whose time is over from the front and returns who is next.
func (s *handover) first() int8 {
	for s.length > 0 && s.kept[s.queue[0]] == 0 {
		s.lapsed[s.queue[0]] = true
		s.leave(s.queue[0])
	}
	if s.length == 0 {
		return -1
	}
	return s.queue[0]
}

// handOver gives the free lock to the first in the queue that is not taken for dead.
func (s *handover) handOver(b bug) {
	for {
		i := s.first()
		if i < 0 {
			return
		}
		s.leave(i)
		if s.p[i].phase == dead && b != "the dead are granted to, for ever" {
			continue // no process listens to its inbox
		}
		s.owner, s.ttl = i, claim
		if b == "the dead are granted to, for ever" || b == "a grant has no TTL" {
			s.ttl = 127
		}
		s.p[i].message, s.p[i].messaged = true, 0
		return
	}
}

// runAcquire is lock_acquire.lua.
func (s *handover) runAcquire(i int8, b bug) {
	p := &s.p[i]
	p.acquire = refused
	switch {
	case s.buried[i]:
	case s.owner == i:
		s.ttl, p.acquire = max(s.ttl, lease), granted
	case s.owner < 0 && (s.first() < 0 || s.first() == i):
		s.leave(i)
		s.owner, s.ttl, p.acquire = i, lease, granted
	default:
		s.stand(i, p.stood && b != "a dropped waiter returns to the tail")
		if s.owner < 0 && s.first() != i {
			// Left open, or expired: the first waiter asks soon.
			return
		}
	}
}

// runRelease is lock_release.lua; open, if it is Redisson's turn.
func (s *handover) runRelease(i int8, open bool, b bug) {
	p := &s.p[i]
	p.release = false
	s.buried[i] = s.buried[i] || p.buries
	s.leave(i)
	if s.owner == i || b == "a release does not look at the owner" && s.owner >= 0 {
		s.owner, s.ttl = -1, 0
		if !open {
			s.handOver(b)
		}
	}
}

// passOver is a release that counts no listener at the inbox of the first in the queue, whose
// process lives: its connection is lost, or has stayed at what is a replica now.
func (s *handover) passOver(b bug) {
	i := s.first()
	if i < 0 {
		return
	}
	s.lapsed[i] = true
	s.leave(i)
	if b == "the message is sent before its listeners are counted" {
		s.p[i].message, s.p[i].messaged = true, 0 // replicas pass it on
	}
}

// giveUp ends a claim or a hold.
func (p *process) giveUp(b bug) {
	p.phase, p.deadline = gone, 0
	p.release = true
	p.buries = p.acquire == sent && b != "no tombstones"
}

// hear is a grant message.
func (p *process) hear(b bug) {
	age := p.messaged
	p.message, p.messaged = false, 0
	believing := b == "a message is believed after the claim was given up" && p.phase == gone
	switch {
	case p.phase != waiting && !believing:
	case b == "a message is trusted whatever its age" && p.acquire == none:
		p.phase, p.deadline = holding, claim
	case age == 0:
		p.phase, p.deadline = holding, claim
	case p.acquire == none:
		p.ask() // confirmed by asking
	}
}

func (p *process) ask() { p.acquire, p.age = sent, 0 }

// answer is the reply to an acquire.
func (p *process) answer(b bug) {
	got, age := p.acquire, p.age
	if b == "trust counts from the reply" {
		age = 0
	}
	p.acquire, p.age = none, 0
	if p.phase != waiting {
		return // granted by a message since, or given up
	}
	switch {
	case got == refused:
		p.stood = true
	case lease-age > 0:
		p.phase, p.deadline = holding, lease-age
	default: // too late to be a grant
		p.giveUp(b)
	}
}

// tick lets time pass.
func (s *handover) tick() {
	if s.ttl > 0 && s.ttl < 100 {
		if s.ttl--; s.ttl == 0 {
			s.lapsed[s.owner] = true
			s.owner = -1
		}
	}
	for i := range s.p {
		p := &s.p[i]
		if p.deadline > 0 {
			p.deadline--
		}
		if p.acquire != none {
			p.age = min(p.age+1, lease)
		}
		if p.message {
			p.messaged = min(p.messaged+1, claim)
		}
		if s.place(int8(i)) >= 0 {
			if s.live(i) && p.phase == waiting {
				s.kept[i] = patience // its process asks more often than that
			} else {
				s.kept[i] = max(s.kept[i]-1, 0)
			}
		}
	}
}
