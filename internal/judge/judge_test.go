package judge

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// story is a world made by hand, with one lock and two processes.
type story struct {
	*Judge
	now   time.Duration
	lock  *Lock
	a, b  *actor
	rough bool // something is wrong
}

const ms = time.Millisecond

type actor struct {
	s      *story
	name   string
	linger time.Duration
}

func (p *actor) String() string                  { return p.name }
func (p *actor) Owns(_ *Lock, id string) bool    { return strings.HasPrefix(id, "hf-"+p.name+":") }
func (p *actor) Air(*Lock) Air                   { return Air{Healthy: true, Calm: !p.s.rough} }
func (s *story) Now() time.Duration              { return s.now }
func (s *story) Prompt(*Lock) time.Duration      { return 10 * ms }
func (s *story) Tidy(*Lock) time.Duration        { return 1000 * ms }
func (s *story) Outage(*Lock) time.Duration      { return 5000 * ms }
func (s *story) Lingers(p Process) time.Duration { return p.(*actor).linger }
func (s *story) Recheck(time.Duration)           {}
func (s *story) Broken(Violation)                {}

func (s *story) Of(l *Lock, id string) Process {
	for _, p := range []*actor{s.a, s.b} {
		if p.Owns(l, id) {
			return p
		}
	}
	return nil
}

func (s *story) Wakes(l *Lock, _ *Wait) Waking {
	if s.rough {
		return Waking{Free: !l.Held(), Bound: s.Outage(l)}
	}
	return Waking{Free: !l.Held(), Bound: s.Prompt(l)}
}

func newStory() *story {
	s := &story{lock: NewLock("x", "x", true, 0), now: ms}
	s.a, s.b = &actor{s: s, name: "a"}, &actor{s: s, name: "b"}
	s.Judge = New(s)
	return s
}

// at has a look before and after a step.
func (s *story) at(t time.Duration, steps ...func()) {
	s.now = t
	s.Look(s.lock)
	for _, do := range steps {
		do()
	}
	s.Look(s.lock)
}

// has says what Redis has: holders until a second from now, and a queue.
func (s *story) has(ids string, queue ...string) func() {
	return func() {
		st := State{Until: s.now + 1000*ms, Queue: queue}
		for _, id := range strings.Fields(ids) {
			st.Holders = append(st.Holders, Holder{ID: "hf-" + id, Until: st.Until, Since: s.now})
		}
		for range queue {
			st.Kept = append(st.Kept, s.now+10_000*ms)
		}
		before := s.lock.State
		s.Wrote(s.lock, st)
		s.Order(s.lock, &before, "a script")
	}
}

// until is a lease.
type until struct {
	s    *story
	ends time.Duration
}

func (l until) Valid() bool         { return l.s.now < l.ends }
func (l until) Ends() time.Duration { return l.ends }

func (s *story) claim(p *actor, owner string, write bool, ends time.Duration) *Claim {
	return &Claim{Process: p, Who: owner, Owner: owner, Write: write, Locks: []*Lock{s.lock}, Lease: until{s, ends}}
}

func (s *story) take(p *actor, n int) func() {
	return s.grant(&Claim{Process: p, Who: p.name, Owner: p.name, Permits: n, Locks: []*Lock{s.lock}, Lease: until{s, 900 * ms}})
}

func (s *story) sets(n int) func()     { return func() { s.lock.SetPermits(n) } }
func (s *story) grant(c *Claim) func() { return func() { s.Granted(c) } }
func (s *story) end(c *Claim) func()   { return func() { s.Ends(c) } }
func (s *story) waits(x *Wait) func()  { return func() { s.Begins(s.lock, x) } }
func (s *story) answer(x *Wait) func() { return func() { s.lock.Returns(x) } }
func (s *story) back(id string) func() { return func() { s.GivenBack(s.lock, "hf-"+id) } }
func (s *story) lose() func()          { return func() { s.lock.Lose(s.now+1000*ms, 0) } }
func (s *story) seat(term uint64, v string) func() {
	return func() { s.lock.Seat = Seat{Term: term, Value: v} }
}
func (s *story) token(c *Claim, n uint64) func() { return func() { s.Token(s.lock, c, n) } }

// Each rule finds what it is there for, and nothing else.
func TestRules(t *testing.T) {
	for _, tc := range []struct {
		name string
		tell func(s *story)
		want string
	}{
		{"one after the other", func(s *story) {
			one, two := s.claim(s.a, "1", true, 900*ms), s.claim(s.b, "2", true, 900*ms)
			s.at(10*ms, s.has("a:1:write"), s.grant(one))
			s.at(20*ms, s.end(one), s.has(""), s.has("b:2:write"), s.grant(two))
		}, ""},
		{"two at a time", func(s *story) {
			s.at(10*ms, s.has("a:1:write"), s.grant(s.claim(s.a, "1", true, 900*ms)))
			s.at(20*ms, s.has("a:1:write b:2:write"), s.grant(s.claim(s.b, "2", true, 900*ms)))
		}, "overlap"},
		{"a deadline ends a claim", func(s *story) {
			s.at(10*ms, s.has("a:1:write"), s.grant(s.claim(s.a, "1", true, 15*ms)))
			s.at(20*ms, s.has("b:2:write"), s.grant(s.claim(s.b, "2", true, 900*ms)))
		}, ""},
		{"an owner does not exclude itself", func(s *story) {
			s.at(10*ms, s.has("a:1:write"), s.grant(s.claim(s.a, "1", true, 900*ms)), s.grant(s.claim(s.a, "1", true, 900*ms)))
		}, ""},
		{"readers share", func(s *story) {
			s.at(10*ms, s.has("a:1 b:2"), s.grant(s.claim(s.a, "1", false, 900*ms)), s.grant(s.claim(s.b, "2", false, 900*ms)))
		}, ""},
		{"a writer beside a reader", func(s *story) {
			s.at(10*ms, s.has("a:1 b:2:write"), s.grant(s.claim(s.a, "1", false, 900*ms)), s.grant(s.claim(s.b, "2", true, 900*ms)))
		}, "overlap"},
		{"three permits of two", func(s *story) { s.at(10*ms, s.sets(2), s.has("a:1 a:2 b:1"), s.take(s.a, 2), s.take(s.b, 1)) }, "overlap"},
		{"held when the number was cut", func(s *story) { s.at(10*ms, s.sets(2), s.has("a:1 a:2"), s.take(s.a, 2), s.sets(1)) }, ""},
		{"others than these", func(s *story) {
			s.at(10*ms, s.sets(2), s.has("a:1 b:1"), s.take(s.b, 1), s.sets(1), s.has("b:1"), s.take(s.b, 1))
		}, "overlap"},
		{"a permit that Redis has not got", func(s *story) { s.at(10*ms, s.sets(2), s.has("a:1"), s.take(s.a, 2)) }, "claim without hold"},
		{"a permit is lost", func(s *story) { s.at(10*ms, s.sets(2), func() { s.Wrote(s.lock, State{Missing: 1}) }) }, "permits"},
		{"two at a time, after a deletion", func(s *story) {
			s.at(10*ms, s.has("a:1:write"), s.grant(s.claim(s.a, "1", true, 900*ms)))
			s.at(20*ms, s.lose(), s.has(""), s.has("b:2:write"), s.grant(s.claim(s.b, "2", true, 900*ms)))
		}, ""},
		{"nothing in Redis", func(s *story) { s.at(10*ms, s.grant(s.claim(s.a, "1", true, 900*ms))) }, "claim without hold"},
		{"another's hold", func(s *story) {
			s.at(10*ms, s.has("b:1:write"), s.grant(s.claim(s.a, "1", true, 900*ms)))
		}, "claim without hold"},
		{"a hold that ends before the claim", func(s *story) {
			s.at(10*ms, s.has("a:1:write"), s.grant(s.claim(s.a, "1", true, 1100*ms)))
		}, "claim without hold"},
		{"a writer stands on a reader's hold", func(s *story) {
			s.at(10*ms, s.has("a:1"), s.grant(s.claim(s.a, "1", true, 900*ms)))
		}, "claim without hold"},
		{"a hold that may still be there", func(s *story) {
			c := s.claim(s.a, "1", true, 900*ms)
			s.at(10*ms, s.has("a:1:write"), s.grant(c))
			s.at(20*ms, func() { s.lock.Promised = s.lock.State.Holders }, s.has(""))
		}, ""},
		{"no TTL", func(s *story) { s.at(10*ms, s.has("a:1"), func() { s.lock.State.Until = 0 }) }, "ttl"},
		{"tokens grow", func(s *story) {
			w, r := s.claim(s.a, "1", true, 0), s.claim(s.b, "2", false, 0)
			s.at(10*ms, s.token(w, 3), s.token(r, 5), s.token(r, 4), s.token(w, 6))
		}, ""},
		{"a token twice", func(s *story) {
			w := s.claim(s.a, "1", true, 0)
			s.at(10*ms, s.token(w, 3), s.token(w, 3))
		}, "token"},
		{"a writer with a smaller token than a reader before", func(s *story) {
			s.at(10*ms, s.token(s.claim(s.b, "2", false, 0), 7), s.token(s.claim(s.a, "1", true, 0), 4))
		}, "token"},
		{"re-entry with a token of its own", func(s *story) { s.at(10*ms, func() { s.TokenAgain(s.lock, "1", 8, 7) }) }, "token"},
		{"granted past the first in the queue", func(s *story) {
			s.at(10*ms, s.has("a:1:write", "hf-a:2", "hf-b:3"))
			s.at(20*ms, s.has("b:3:write", "hf-a:2"))
		}, "order"},
		{"the first in the queue leaves", func(s *story) {
			s.at(10*ms, s.has("a:1:write", "hf-a:2", "hf-b:3"))
			s.at(20*ms, s.has("b:3:write"))
		}, ""},
		{"a queue in another order", func(s *story) {
			s.at(10*ms, s.has("a:1:write", "hf-a:2", "hf-b:3"))
			s.at(20*ms, s.has("a:1:write", "hf-b:3", "hf-a:2"))
		}, "queue"},
		{"an owner comes back", func(s *story) {
			s.at(10*ms, s.has("a:1:write"))
			s.at(20*ms, s.has(""), s.back("a:1:write"))
			s.at(30*ms, s.has("a:1:write"))
		}, "resurrection"},
		{"woken at once", func(s *story) {
			x := &Wait{Process: s.b, Who: "2"}
			s.at(10*ms, s.has("a:1:write"), s.grant(s.claim(s.a, "1", true, 400*ms)), s.waits(x))
			s.at(500*ms, s.has(""))
			s.at(505*ms, s.answer(x))
		}, ""},
		{"found by a poll", func(s *story) {
			x := &Wait{Process: s.b, Who: "2"}
			s.at(10*ms, s.waits(x))
			s.at(500*ms, s.answer(x))
		}, "lost wake-up"},
		{"found by a poll, amid faults", func(s *story) {
			x := &Wait{Process: s.b, Who: "2"}
			s.rough = true
			s.at(10*ms, s.waits(x))
			s.at(500*ms, s.answer(x))
		}, ""},
		{"not even by a poll", func(s *story) {
			s.rough = true
			s.at(10*ms, s.waits(&Wait{Process: s.b, Who: "2"}))
			s.at(6000 * ms)
		}, "lost wake-up"},
		{"granted, and not told", func(s *story) {
			s.at(10*ms, s.waits(&Wait{Process: s.b, Who: "2"}), s.has("b:2:write"))
			s.at(500 * ms)
		}, "unheard"},
		{"an Unlock that did not", func(s *story) {
			c := s.claim(s.a, "1", true, 900*ms)
			s.at(10*ms, s.has("a:1:write"), s.grant(c))
			s.at(20*ms, s.end(c))
			s.at(1500 * ms)
		}, "forsaken hold"},
		{"a process keeps it for its time", func(s *story) {
			s.a.linger = 1000 * ms
			s.at(10*ms, s.has("a:01:write"))
			s.at(1500 * ms)
		}, ""},
		{"and for longer", func(s *story) {
			s.a.linger = 1000 * ms
			s.at(10*ms, s.has("a:01:write"))
			s.at(2500 * ms)
		}, "forsaken hold"},
		{"and from one that waits", func(s *story) {
			s.a.linger = 1000 * ms
			s.at(10*ms, s.has("a:01:write", "hf-b:2"), s.waits(&Wait{Process: s.b, Who: "2"}))
			s.at(500 * ms)
		}, "kept from others"},
		{"a place that no caller wants", func(s *story) {
			s.at(10*ms, s.has("a:1:write", "hf-b:2"), s.grant(s.claim(s.a, "1", true, 900*ms)))
			s.at(2000 * ms)
		}, "forsaken place"},
		{"refused for no reason", func(s *story) {
			s.at(10 * ms)
			s.at(50*ms, func() { s.Refused(s.lock, "2", 40*ms, true) })
		}, "false refusal"},
		{"refused because of another", func(s *story) {
			s.at(10*ms, s.has("a:1:write"), s.grant(s.claim(s.a, "1", true, 900*ms)))
			s.at(50*ms, func() { s.Refused(s.lock, "2", 40*ms, true) })
		}, ""},
		{"refused because a process keeps it", func(s *story) {
			s.at(10*ms, s.has("a:01:write"))
			s.at(50*ms, func() { s.Refused(s.lock, "2", 40*ms, true) })
		}, "refused for an idle lock"},
		{"refused because of one that may have had it until now", func(s *story) {
			s.at(10*ms, s.has("b:2:write"))
			s.at(20*ms, func() { s.lock.Promised = s.lock.State.Holders }, s.has("a:01:write"))
			s.at(50*ms, func() { s.Refused(s.lock, "2", 40*ms, true) })
		}, ""},
		{"refused because the answer to another TryLock is on its way", func(s *story) {
			s.at(5*ms, s.waits(&Wait{Process: s.a, Who: "1", Since: 5 * ms, Once: true}))
			s.at(10*ms, s.has("a:01:write"))
			s.at(50*ms, func() { s.Refused(s.lock, "2", 40*ms, true) })
		}, ""},
		{"told of a loss that did not happen", func(s *story) { s.Lost(s.lock, "1", Loss{}, nil) }, "lost without cause"},
		{"a deadline, while it was valid", func(s *story) { s.Lost(s.lock, "1", Loss{Deadline: true, Valid: true, Trouble: true}, nil) }, "false loss"},
		{"a deadline that nothing has brought about", func(s *story) { s.Lost(s.lock, "1", Loss{Deadline: true}, nil) }, "lost without cause"},
		{"a deadline, while something was wrong", func(s *story) { s.Lost(s.lock, "1", Loss{Deadline: true, Trouble: true}, nil) }, ""},
		{"a loss that Unlock does not tell", func(s *story) { s.Hidden(s.lock, "1", errors.New("lost")) }, "hidden loss"},
		{"a leader's record", func(s *story) {
			c := s.claim(s.a, "1", true, 900*ms)
			s.at(10*ms, s.has("a:1:write"), s.grant(c), s.seat(7, "a"), func() { s.Recorded(s.lock, c, 7, "a", "a again") })
			s.at(950*ms, s.seat(8, "b"), func() { s.Recorded(s.lock, c, 7, "a") })
		}, ""},
		{"another's record", func(s *story) {
			c := s.claim(s.a, "1", true, 900*ms)
			s.at(10*ms, s.has("a:1:write"), s.grant(c), s.seat(6, "a"), func() { s.Recorded(s.lock, c, 7, "a") })
		}, "record"},
		{"one that did not lead", func(s *story) { s.Named(s.lock, "b", Seat{Term: 7}, func(Seat) bool { return false }) }, "false leader"},
		{"an older term after a vacancy", func(s *story) {
			o := &Observer{Process: s.a, Who: "o"}
			s.Observed(s.lock, o, Seat{Term: 7})
			s.Observed(s.lock, o, Seat{})
			s.Observed(s.lock, o, Seat{Term: 6})
		}, "observed terms"},
		{"told of each change in time", func(s *story) {
			o := &Observer{Process: s.a, Who: "o"}
			look := func() { s.Observes(s.lock, o, true, 0) }
			s.at(10*ms, look)
			s.at(19*ms, func() { s.Observed(s.lock, o, Seat{}) }, look, s.seat(7, "a"), look)
			s.at(28*ms, look, s.seat(7, "b"), look)
			s.at(37*ms, look, func() { s.Observed(s.lock, o, s.lock.Seat) }, look)
		}, ""},
		{"not told of a change", func(s *story) {
			o := &Observer{Process: s.a, Who: "o"}
			s.at(10*ms, s.seat(7, "a"), func() { s.Observes(s.lock, o, true, 0) })
			s.at(30*ms, func() { s.Observes(s.lock, o, true, 0) })
		}, "unobserved"},
		{"not told of a change of which no message tells", func(s *story) {
			o := &Observer{Process: s.a, Who: "o"}
			s.at(10*ms, func() { s.Observes(s.lock, o, false, 0) })
			s.at(30*ms, func() { s.Observes(s.lock, o, false, 0) })
		}, ""},
		{"told late", func(s *story) { s.Told(s.lock, "1", 20*ms, 10*ms) }, "told late"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStory()
			tc.tell(s)
			var rules []string
			for _, v := range s.Found {
				rules = append(rules, v.Rule)
			}
			if got := strings.Join(slices.Compact(rules), ", "); got != tc.want {
				t.Errorf("found %q, want %q: %v", got, tc.want, s.Found)
			}
		})
	}
}

// A Redlock's lease stands on a majority of its members.
func TestRules_OfAMajority(t *testing.T) {
	s := newStory()
	whole := NewLock("x", "redlock x", false, 0, NewLock("x", "x@1", false, 0), NewLock("x", "x@2", false, 0), NewLock("x", "x@3", false, 0))
	c := s.claim(s.a, "1", true, 900*ms)
	c.Votes, c.Locks = true, append([]*Lock{whole}, whole.Members...)
	for _, m := range whole.Members[:2] {
		s.Wrote(m, State{Until: 1000 * ms, Holders: []Holder{{ID: "hf-a:1", Until: 1000 * ms}}})
	}
	s.Granted(c)
	if s.Look(whole); len(s.Found) > 0 {
		t.Errorf("with two of three: %v", s.Found)
	}
	s.Wrote(whole.Members[0], State{})
	if s.Look(whole); len(s.Found) != 1 || s.Found[0].Rule != "claim without hold" {
		t.Errorf("with one of three: %v", s.Found)
	}
}
