package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// Ambiguity is what the server's file says of acquires that ended without a verdict.
type Ambiguity struct {
	Ended, Unavailable, Cut int           // by cause: the context, no answer, the process killed
	Ghosts                  int           // holds in Redis that no caller was given, or heard of
	Longest                 time.Duration // the longest such hold
}

func (a *Ambiguity) add(b Ambiguity) {
	a.Ended += b.Ended
	a.Unavailable += b.Unavailable
	a.Cut += b.Cut
	a.Ghosts += b.Ghosts
	a.Longest = max(a.Longest, b.Longest)
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
// back. What no caller learned of has ended as well.
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
			if !in.shared {
				s.wrote = max(s.wrote, in.token)
			}
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
	begin := state{max: s.max, wrote: s.wrote}
	for k, n := range leases {
		for range n {
			begin = begin.entered(&k)
		}
	}
	return begin
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
