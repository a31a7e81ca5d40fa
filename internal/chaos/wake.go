package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Bounds of the third judge. A message wakes a waiter within milliseconds and a poll
// only after a second, so the first bound tells them apart on a busy machine. The
// second is a poll, a lease, a new connection and the longest fault.
const (
	wakeBound  = 500 * time.Millisecond
	stuckBound = 5 * time.Second
	toldBound  = 2 * stallBound // from a deadline to Done: a timer; up to half of it is no stall yet
)

// Wakes is the third judge: no caller waits for a lock that is free, or that Redis has given
// to a caller that does not know it, and no lock is lost or refused for want of an answer
// while nothing is wrong.
func Wakes(h *History) (violations []Violation, longest time.Duration) {
	free, leases := make(map[string][]Span), h.Leases()
	for name := range h.Truth.Holds {
		free[name] = append(h.Truth.absent(name, func(*Hold) bool { return true }), h.unheard(name, leases[name])...)
	}
	for _, o := range h.Ops {
		if o.Do != Lock || kindOf(o.Name) == nil || h.process(o.Proc).Died != never {
			continue
		}
		var idle, calm time.Duration // how long it waited while the lock was free
		for _, f := range free[o.Name] {
			if both := (Span{max(f.Lo, o.Call), min(f.Hi, o.Return, h.Quiesced)}); both.Lo < both.Hi {
				idle += time.Duration(both.Hi - both.Lo)
				calm += h.calm(o.Name, both)
			}
		}
		switch {
		case calm > wakeBound:
			violations = append(violations, Violation{
				"wake", "lost wake-up", o.Name, o.Call,
				fmt.Sprintf("%v waited %v, for %v of it nobody used the lock and nothing was wrong", o, time.Duration(o.Return-o.Call), calm),
			})
		case idle > stuckBound+h.ttl(o.Name)-h.TTL:
			violations = append(violations, Violation{
				"wake", "stuck waiter", o.Name, o.Call,
				fmt.Sprintf("%v waited %v, for %v of it nobody used the lock", o, time.Duration(o.Return-o.Call), idle),
			})
		}
		after := time.Duration(min(o.Return, h.Quiesced) - max(o.Call, h.Healed)) // healing, whenever it came
		if o.Result == OK {
			longest = max(longest, after)
		}
		if bound := h.ttl(o.Name) + h.recovery(o.Name); after > bound {
			violations = append(violations, Violation{"wake", "recovery", o.Name, h.Healed, fmt.Sprintf("%v waited %v after healing", o, after)})
		}
	}
	for _, all := range leases {
		for _, l := range all {
			if u := l.Unlock; u != nil && u.Result == Lost && !l.Acquire.Fixed && !l.Excused && h.calm(u.Name, Span{l.From, u.Call}) == time.Duration(u.Call-l.From) {
				violations = append(violations, Violation{"wake", "lost without cause", l.Acquire.Name, u.Call, l.String()})
			}
		}
	}
	return violations, longest
}

// unheard returns when Redis had given the lock to processes none of whose callers had it, or
// was about to take others with it.
func (h *History) unheard(name string, leases []*Lease) (spans []Span) {
	for _, p := range h.Processes {
		known := h.taking(name, p.ID)
		for _, l := range leasesOf(leases, p.ID) {
			known = append(known, Span{l.From, l.over()})
		}
		slices.SortFunc(known, func(a, b Span) int { return cmp.Compare(a.Lo, b.Lo) })
		for _, o := range h.Truth.Holds[name] {
			if o.prefix() != p.Prefix {
				continue
			}
			rest := Span{o.Start.Hi, min(o.End.Lo, h.End)}
			for _, k := range known {
				if k.Hi < rest.Lo || k.Lo > rest.Hi {
					continue
				}
				spans = append(spans, Span{rest.Lo, k.Lo})
				rest.Lo = max(rest.Lo, k.Hi)
			}
			spans = append(spans, rest)
		}
	}
	return slices.DeleteFunc(spans, func(s Span) bool { return s.Lo >= s.Hi })
}

// Told judges how late holders heard that their lease had ended, unless their process
// did not run at that time, whatever the network did. It also returns the longest of these times.
func Told(h *History) (violations []Violation, longest time.Duration) {
	for _, o := range h.Ops {
		if o.Do != told || slices.ContainsFunc(slices.Concat(h.Faults, h.Stalls), func(f Fault) bool {
			return f.standstill() && f.Proc == o.Proc && f.Start <= o.Return && f.End >= o.Call
		}) {
			continue
		}
		late := time.Duration(o.Return - o.Call)
		if longest = max(longest, late); late > toldBound {
			violations = append(violations, Violation{"wake", "told late", o.Name, o.Return, fmt.Sprintf("%v after the deadline: %v", late, o)})
		}
	}
	return violations, longest
}

// recovery is the longest that a caller may wait for a lock after healing, on a machine that may be
// too busy: the lock comes into reach, perhaps at a poll, and the caller takes it within wakeBound.
func (h *History) recovery(name string) time.Duration {
	bound := recovery(h.ttl(name)) + wakeBound
	for _, f := range h.Stalls {
		if f.End > h.Healed {
			bound += time.Duration(f.End - f.Start)
		}
	}
	return bound
}

// calm is how much of a span nothing was wrong with a lock: it lies before the first fault or well
// after the last, and not near a moment at which the machine was too busy.
func (h *History) calm(name string, s Span) time.Duration {
	recovery := int64(recovery(h.ttl(name)))
	rough := []Span{{h.Faulty, h.Healed}}
	if h.Healed != never {
		rough[0].Hi += recovery
	}
	for _, f := range h.Stalls {
		rough = append(rough, Span{f.Start, f.End + recovery})
	}
	slices.SortFunc(rough, func(a, b Span) int { return cmp.Compare(a.Lo, b.Lo) })
	sum := int64(0)
	for _, r := range rough {
		sum += max(0, min(s.Hi, r.Lo)-s.Lo)
		s.Lo = max(s.Lo, r.Hi)
	}
	return time.Duration(sum + max(0, s.Hi-s.Lo))
}

// Bypass is a waiter that was overtaken by one that came later.
type Bypass struct{ Waiter, Other *Op }

// fairSlack is how much later a call must be to count as later: the time it takes to
// stand in the queue, where no process stalls. The order in it is in the server's file.
const fairSlack = stallBound

// Bypasses finds them among calls of Lock that were granted; who gave up does not
// count. Fair locks promise none while nothing is wrong.
func Bypasses(h *History, name string) (all []Bypass) {
	var granted []*Op
	for _, o := range h.Ops {
		if o.Name == name && o.Do == Lock && o.Result == OK && o.ID == o.Chain && !o.Shared {
			granted = append(granted, o)
		}
	}
	slices.SortFunc(granted, func(a, b *Op) int { return cmp.Compare(a.Return, b.Return) })
	for i, b := range granted {
		for _, a := range granted[i+1:] {
			if a.Call+int64(fairSlack) <= b.Call {
				all = append(all, Bypass{a, b})
			}
			if a.Return-b.Return > int64(10*time.Second) {
				break // no caller waits that long
			}
		}
	}
	return all
}

// Order judges the fair locks.
func Order(h *History) (violations []Violation) {
	for i := range Kinds {
		k := &Kinds[i]
		if !k.Fair {
			continue
		}
		for _, name := range k.names() {
			for _, b := range Bypasses(h, name) {
				if h.calm(name, Span{b.Waiter.Call, b.Waiter.Return}) == time.Duration(b.Waiter.Return-b.Waiter.Call) {
					violations = append(violations, Violation{"wake", "order", name, b.Other.Return, fmt.Sprintf("%v before %v", b.Other, b.Waiter)})
				}
			}
		}
	}
	return violations
}
