package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// A ghost is an owner that only the server's file knows: an acquire that was granted
// though its caller was told otherwise, or nothing. Ghosts' owners count from here.
const ghosts = uint64(1) << 63

// grace is how long after a caller's return its process may still deal with the grant.
const grace = 50 * time.Millisecond

// Ambiguity is what the server's file says of acquires that ended without a verdict.
type Ambiguity struct {
	Ended, Unavailable, Cut int           // by cause: the context, no answer, the process killed
	Ghosts                  int           // holds in Redis that no caller was given, or heard of
	Longest                 time.Duration // the longest such hold
}

// Linear is the fourth judge: for each lock there is an order of all operations, each
// at a moment between its call and its return, in which every answer is true.
func Linear(h *History, patience time.Duration) (violations []Violation, amb Ambiguity) {
	leases := h.Leases()
	for _, name := range lockNames() {
		b := &builder{h: h, name: name, leases: leases[name]}
		b.build()
		amb.add(b.amb)
		for _, part := range cut(b.ops) {
			model := lockModel(part.begin)
			switch porcupine.CheckOperationsTimeout(model, part.ops, patience) {
			case porcupine.Illegal:
				at, text := explain(model, part.ops, patience)
				violations = append(violations, Violation{"linear", "impossible answers", name, at, text})
			case porcupine.Unknown:
				text := fmt.Sprintf("%d operations took longer than %v", len(part.ops), patience)
				violations = append(violations, Violation{"linear", "undecided", name, part.ops[0].Call, text})
			}
		}
	}
	return violations, amb
}

// A stretch is a part of a history that begins when nothing was under way, so that the
// state is known for certain.
type stretch struct {
	begin state
	ops   []porcupine.Operation
}

// cut divides a history. A wrong stretch is refuted in no time, a long one by trying
// every order of everything before.
func cut(ops []porcupine.Operation) (parts []stretch) {
	slices.SortFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var part stretch
	until := int64(0) // something is under way until then
	for _, o := range ops {
		if o.Call > until && len(part.ops) > 0 {
			parts = append(parts, part)
			part = stretch{begin: part.after()}
		}
		part.ops = append(part.ops, o)
		until = max(until, o.Return)
	}
	if len(part.ops) > 0 {
		parts = append(parts, part)
	}
	return parts
}

// after is the state when all of the stretch is over: what was taken and not given
// back. What nobody was told of has ended as well.
func (p stretch) after() state {
	s := p.begin
	leases := make(map[input]int) // by owner and side
	if s.writer != 0 {
		leases[input{owner: s.writer, token: s.token}] = s.count
	}
	for _, r := range s.readers {
		leases[input{owner: r.owner, shared: true}] = r.count
	}
	for _, o := range p.ops {
		if in := o.Input.(*input); in.do == stepAcquire {
			key := input{owner: in.owner, shared: in.shared}
			if !in.shared {
				key.token = in.token
			}
			leases[key]++
			s.max = max(s.max, in.token)
		}
	}
	for _, o := range p.ops {
		in := o.Input.(*input)
		if in.do != stepRelease && in.do != stepEnd {
			continue
		}
		for k := range leases {
			if k.owner != in.owner || k.shared != in.shared {
				continue
			}
			if leases[k]--; in.do == stepEnd || leases[k] == 0 {
				delete(leases, k)
			}
		}
	}
	begin := state{max: s.max}
	for k, n := range leases {
		for range n {
			begin = begin.entered(&k)
		}
	}
	return begin
}

func (a *Ambiguity) add(b Ambiguity) {
	a.Ended += b.Ended
	a.Unavailable += b.Unavailable
	a.Cut += b.Cut
	a.Ghosts += b.Ghosts
	a.Longest = max(a.Longest, b.Longest)
}

// explain finds the first operation that fits into no order.
func explain(model porcupine.Model, ops []porcupine.Operation, patience time.Duration) (int64, string) {
	_, info := porcupine.CheckOperationsVerbose(model, ops, patience)
	placed := make(map[any]bool)
	var longest []porcupine.Operation
	for _, partition := range info.PartialLinearizationsOperations() {
		for _, order := range partition {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	for _, o := range longest {
		placed[o.Input] = true
	}
	var first *porcupine.Operation
	for i := range ops {
		if o := &ops[i]; !placed[o.Input] && (first == nil || o.Return < first.Return) {
			first = o
		}
	}
	if first == nil {
		return 0, "no order of the operations explains the answers"
	}
	in := first.Input.(*input)
	text := in.String()
	if in.op != nil {
		text = in.op.String()
	}
	if n := len(longest); n > 0 {
		s := model.Init()
		for _, o := range longest {
			_, s = model.Step(s, o.Input, nil)
		}
		text += ", in the state " + model.DescribeState(s)
	}
	return first.Call, text
}

// builder makes the operations of one lock.
type builder struct {
	h      *History
	name   string
	leases []*Lease
	ops    []porcupine.Operation
	holds  map[string][]*Hold // by prefix
	ended  map[input]bool     // owners whose end is in ops
	amb    Ambiguity
	ghost  uint64
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
			in.do = stepHeld
		case o.Do == Peek && o.Result == Refused:
			in.do = stepFree
		case o.Do == TryLock && o.Result == Refused:
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
// an order refuses newcomers while somebody waits. In Redis that is also one whose caller
// has given up, until its process has withdrawn it, and in its own process a TryLock that
// has no answer yet.
func (b *builder) queued(k *Kind, o *Op) bool {
	if !k.Fair && k.Shared == nil {
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
		own := leasesOf(b.leases, p.ID)
		for _, hold := range b.holdsOf(p.ID) {
			from, orphan := int64(never), true
			for _, l := range own {
				// A lease stands on the hold during which it came, but for one that was downgraded:
				// a grant that nobody heard of, and that ended, is nobody's.
				if l.From <= hold.End.Hi && (l.From >= hold.Start.Lo || !hold.Write && min(l.over(), p.Died) >= hold.Start.Lo) {
					orphan = false
				}
			}
			for _, o := range ops {
				if o.Proc == p.ID && o.Call <= hold.End.Hi && min(o.Return, p.Died)+int64(grace) >= hold.Start.Lo {
					from = min(from, max(o.Call, hold.Start.Lo))
				}
			}
			if orphan {
				from = hold.Start.Lo
				b.amb.Ghosts++
				b.amb.Longest = max(b.amb.Longest, time.Duration(min(hold.End.Lo, b.h.End)-hold.Start.Hi))
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
