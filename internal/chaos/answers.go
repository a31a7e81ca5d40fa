package chaos

import (
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// A ghost is an owner that only the server's file knows: an acquire that was granted
// though its caller was told otherwise, or nothing. Ghosts' owners count from here.
const ghosts = uint64(1) << 63

// grace is how long after a caller's return its process may still deal with the grant.
const grace = 50 * time.Millisecond

// builder makes the operations of one lock for the model, of what callers were told and what
// the server's file has.
type builder struct {
	h       *History
	name    string
	leases  []*Lease
	ops     []porcupine.Operation
	holds   map[string][]*Hold // by prefix
	keepers []*Hold            // of processes that may keep the lock; see kept
	ended   map[input]bool     // owners whose end is in ops
	amb     Ambiguity
	ghost   uint64
}

func (b *builder) add(client int, in *input, call, ret int64) {
	b.ops = append(b.ops, porcupine.Operation{ClientId: client, Input: in, Call: call, Return: max(call, ret)})
}

func (b *builder) build() {
	b.ended = make(map[input]bool)
	k := kindOf(b.name)
	for _, l := range b.leases {
		b.lease(l, k.Fenced)
	}
	var ambiguous []*Op
	for _, o := range b.h.Ops {
		if o.Name != b.name {
			continue
		}
		in := &input{owner: o.owner(), shared: o.Shared, op: o}
		switch {
		case o.Do == Peek && o.Result == OK:
			if b.kept(o) {
				continue // Redis shows it, whether a caller has it or not
			}
			in.do = stepHeld
		case o.Do == Peek && o.Result == Refused:
			in.do = stepFree
		case o.Do == TryLock && o.Result == Refused:
			if o.Return-o.Call >= int64(answerWait) && b.kept(o) {
				ambiguous = append(ambiguous, o) // no answer came, or the grant was not heard
				continue
			}
			if b.queued(k, o) || b.h.excused(o.Name, o.Call) {
				continue // after a deletion, the process that had the lock believes in it for a while
			}
			in.do = stepRefused
		case o.acquires() && o.Result != OK && o.Result != Refused:
			ambiguous = append(ambiguous, o)
			continue
		default:
			continue
		}
		b.add(o.Proc, in, o.Call, o.Return)
	}
	b.ambiguous(ambiguous)
}

// queued reports whether a refusal may be due to an earlier waiter: a kind that keeps
// an order refuses newcomers while a caller waits, and so does a lock that a process keeps. In Redis that is also one whose caller
// has given up, until its process has withdrawn it, and in its own process a TryLock that
// has no answer yet.
func (b *builder) queued(k *Kind, o *Op) bool {
	if !k.Fair && k.Shared == nil && !b.kept(o) {
		return false
	}
	for _, w := range b.h.Ops {
		if w.Name == b.name && w.Proc == o.Proc && w != o && w.acquires() && w.Call <= o.Return && min(w.Return, b.h.process(w.Proc).Died) >= o.Call {
			return true
		}
	}
	return slices.ContainsFunc(b.h.Truth.Queued[b.name], func(s Span) bool { return s.Lo <= o.Return && s.Hi >= o.Call })
}

// lease adds a grant and its end.
func (b *builder) lease(l *Lease, fenced bool) {
	o := l.Acquire
	fenced = fenced && o.Do != Several // a Multi has no token
	in := &input{do: stepAcquire, owner: o.owner(), shared: o.Shared, fenced: fenced, token: o.Token, op: o}
	if l.Excused && l.To <= l.From {
		in.do, in.fenced = stepUnknown, false // given after an administrator had a hand in it
	}
	// The grant cannot be older than the hold it stands on: a wait is no part of it.
	b.add(o.Proc, in, max(o.Call, min(b.holdStart(l), o.Return)), o.Return)
	u := l.Unlock
	if u != nil && u.Result == OK && !l.Excused {
		b.add(o.Proc, &input{do: stepRelease, owner: o.owner(), shared: o.Shared, op: u}, u.Call, u.Return)
		return
	}
	// Lost, in doubt, taken away, or the process died: it ends when Redis ends it, and
	// not before the claim does.
	side := input{owner: o.owner(), shared: o.Shared}
	if b.ended[side] {
		return
	}
	b.ended[side] = true
	call, ret := max(l.To, o.Call), max(b.holdEnd(l), o.Return)
	if u != nil {
		ret = max(ret, u.Call)
		if l.Excused {
			ret = max(ret, u.Return)
		}
	}
	if l.Excused {
		call = min(call, o.Call)
	}
	b.add(o.Proc, &input{do: stepEnd, owner: o.owner(), shared: o.Shared, op: u}, min(call, ret), ret)
}

// holdStart is when the first hold of the process that can be the lease's may have
// begun.
func (b *builder) holdStart(l *Lease) int64 {
	start := int64(never)
	for _, o := range b.holdsOf(l.Acquire.Proc) {
		if o.Start.Lo <= l.Acquire.Return && o.End.Hi >= l.Acquire.Return {
			start = min(start, o.Start.Lo)
		}
	}
	if start == never {
		return l.Acquire.Call
	}
	return start
}

// holdEnd is when the process's hold under the lease was over for certain: of a read lease
// under a write lease, also the hold that a downgrade has left.
func (b *builder) holdEnd(l *Lease) (end int64) {
	for _, o := range b.holdsOf(l.Acquire.Proc) {
		from := l.Acquire.Return
		if l.Acquire.Shared && !o.Write {
			from = l.over()
		}
		if o.Start.Lo <= from && o.End.Hi >= l.Acquire.Return {
			end = max(end, o.End.Hi)
		}
	}
	return max(end, l.To)
}

// holdsOf returns a process's holds.
func (b *builder) holdsOf(proc int) []*Hold {
	if b.holds == nil {
		b.holds = make(map[string][]*Hold)
		for _, o := range b.h.Truth.Holds[b.name] {
			b.holds[o.prefix()] = append(b.holds[o.prefix()], o)
		}
	}
	return b.holds[b.h.process(proc).Prefix]
}

// ambiguous adds a ghost for each hold that one of the acquires without a verdict may
// have had, and for those that no lease accounts for.
func (b *builder) ambiguous(ops []*Op) {
	for _, o := range ops {
		switch {
		case o.Return == never:
			b.amb.Cut++
		case o.Result == Ended:
			b.amb.Ended++
		default:
			b.amb.Unavailable++
		}
	}
	for _, p := range b.h.Processes {
		leased, taking := b.leased(p), b.h.taking(b.name, p.ID)
		for _, hold := range b.holdsOf(p.ID) {
			from := int64(never)
			for _, o := range ops {
				if o.Proc == p.ID && o.Call <= hold.End.Hi && min(o.Return, p.Died)+int64(grace) >= hold.Start.Lo {
					from = min(from, max(o.Call, hold.Start.Lo))
				}
			}
			if !leased[hold] {
				from = hold.Start.Lo
				if !slices.ContainsFunc(taking, func(s Span) bool { return s.Lo <= hold.Start.Hi && s.Hi >= hold.Start.Lo }) {
					b.amb.Ghosts++
					b.amb.Longest = max(b.amb.Longest, time.Duration(min(hold.End.Lo, b.h.End)-hold.Start.Hi))
				}
			}
			if from == never {
				continue
			}
			b.ghost++
			shared := kindOf(b.name).Shared != nil && !hold.Write
			b.add(p.ID, &input{do: stepUnknown, owner: ghosts | b.ghost, shared: shared}, from, hold.End.Hi)
			b.add(p.ID, &input{do: stepEnd, owner: ghosts | b.ghost, shared: shared}, from, hold.End.Hi)
		}
	}
}

// leased are the holds that p's leases account for. A lease stands on the hold during which it
// came, a read lease also on what a downgrade has made of that. Where it may have come during
// two, as their times overlap by what is not known of them, it is the later one: the other was
// granted to a caller that had left, and given back.
func (b *builder) leased(p *Process) map[*Hold]bool {
	leased := make(map[*Hold]bool)
	for _, l := range leasesOf(b.leases, p.ID) {
		latest := make(map[bool]*Hold) // of each side
		for _, hold := range b.holdsOf(p.ID) {
			switch {
			case l.From > hold.End.Hi:
			case l.From >= hold.Start.Lo:
				latest[hold.Write] = hold
			case l.Acquire.Shared && !hold.Write && min(l.over(), p.Died) >= hold.Start.Lo:
				leased[hold] = true
			}
		}
		for _, hold := range latest {
			leased[hold] = true
		}
	}
	return leased
}
