package chaos

import (
	"fmt"
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
	Ghosts                  int           // holds in Redis that no caller was given
	Longest                 time.Duration // the longest such hold
}

// Linear is the fourth judge: for each lock there is an order of all operations, each
// at a moment between its call and its return, in which every answer is true.
func Linear(h *History, patience time.Duration) (violations []Violation, amb Ambiguity) {
	leases := h.Leases()
	model := lockModel()
	for _, name := range lockNames() {
		b := &builder{h: h, name: name, leases: leases[name]}
		b.build()
		amb.add(b.amb)
		switch porcupine.CheckOperationsTimeout(model, b.ops, patience) {
		case porcupine.Illegal:
			at, text := explain(model, b.ops, patience)
			violations = append(violations, Violation{"linear", "impossible answers", name, at, text})
		case porcupine.Unknown:
			violations = append(violations, Violation{"linear", "undecided", name, h.Start, fmt.Sprintf("%d operations took longer than %v", len(b.ops), patience)})
		}
	}
	return violations, amb
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
	ended  map[uint64]bool // owners whose end is in ops
	amb    Ambiguity
	ghost  uint64
}

func (b *builder) add(client int, in *input, call, ret int64) {
	b.ops = append(b.ops, porcupine.Operation{ClientId: client, Input: in, Call: call, Return: max(call, ret)})
}

func (b *builder) build() {
	b.ended = make(map[uint64]bool)
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
		case o.Do == TryLock && o.Result == Refused && !b.queued(k, o):
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
// an order refuses newcomers while somebody waits.
func (b *builder) queued(k *Kind, o *Op) bool {
	if !k.Fair && k.Shared == nil {
		return false
	}
	for _, w := range b.h.Ops {
		if w.Name == b.name && w.Do == Lock && w.Call <= o.Return && w.Return >= o.Call {
			return true
		}
	}
	return false
}

// lease adds a grant and its end.
func (b *builder) lease(l *Lease, fenced bool) {
	o := l.Acquire
	in := &input{do: stepAcquire, owner: o.owner(), shared: o.Shared, fenced: fenced, token: o.Token, op: o}
	if l.Excused && l.To <= l.From {
		in.do, in.fenced = stepUnknown, false // given after an administrator had a hand in it
	}
	b.add(o.Proc, in, o.Call, o.Return)
	u := l.Unlock
	if u != nil && u.Result == OK && !l.Excused {
		b.add(o.Proc, &input{do: stepRelease, owner: o.owner(), shared: o.Shared, op: u}, u.Call, u.Return)
		return
	}
	// Lost, in doubt, taken away, or the process died: it ends when Redis ends it, and
	// not before the claim does.
	if b.ended[o.owner()] {
		return
	}
	b.ended[o.owner()] = true
	call, ret := max(l.To, o.Call), b.holdEnd(l)
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

// holdEnd is when the process's hold under the lease was over for certain.
func (b *builder) holdEnd(l *Lease) (end int64) {
	for _, o := range b.h.Truth.Holds[b.name] {
		if o.prefix() == b.prefix(l.Acquire.Proc) && o.Start.Lo <= l.Acquire.Return && o.End.Hi >= l.Acquire.Return {
			end = max(end, o.End.Hi)
		}
	}
	return max(end, l.To)
}

func (b *builder) prefix(proc int) string { return b.h.process(proc).Prefix }

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
		for _, hold := range b.h.Truth.Holds[b.name] {
			if hold.prefix() != p.Prefix {
				continue
			}
			from, orphan := int64(never), true
			for _, l := range own {
				if l.Acquire.Call <= hold.End.Hi && min(l.over(), p.Died) >= hold.Start.Lo {
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
