package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Violation is a broken promise.
type Violation struct {
	Judge string // who found it
	Rule  string // what was promised
	Name  string // of the lock
	At    int64
	Text  string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s: %s: %s: %s", v.Judge, v.Rule, v.Name, v.Text)
}

// Lease is what a caller was given, from the grant to the Unlock.
type Lease struct {
	Acquire *Op
	Unlock  *Op // nil: the process died before
	// The claim: from the return of the acquire to the call of Unlock or the deadline,
	// whichever is first. Empty if To is not after From.
	From, To int64
	// Excused: an operator's command took the lock away at To, or the loss of another lock of a
	// Multi did. Exclusion is not promised from then on.
	Excused bool
}

func (l *Lease) owner() uint64 { return l.Acquire.owner() }

// over is when the caller knew that it was over; never if it did not.
func (l *Lease) over() int64 {
	if l.Unlock == nil {
		return never
	}
	return l.Unlock.Return
}

func (l *Lease) String() string {
	s := fmt.Sprintf("[%v %v by", l.Acquire, time.Duration(l.To-l.From))
	if l.Unlock != nil {
		s += " " + l.Unlock.String()
	}
	return s + "]"
}

// Leases pairs acquires with their Unlocks and computes the claims, by lock and in the
// order of From.
func (h *History) Leases() map[string][]*Lease {
	type id struct {
		proc int
		op   int64
	}
	unlocks := make(map[id]*Op)
	for _, o := range h.Ops {
		if o.Do == Unlock {
			unlocks[id{o.Proc, o.Lease}] = o
		}
	}
	leases := make(map[string][]*Lease)
	for _, o := range h.Ops {
		if !o.acquires() || o.Result != OK {
			continue
		}
		l := &Lease{Acquire: o, Unlock: unlocks[id{o.Proc, o.ID}], From: o.Return, To: o.Deadline}
		if u := l.Unlock; u != nil {
			l.To = min(u.Call, u.Deadline)
		}
		l.To = min(l.To, h.process(o.Proc).Died)
		h.excuse(l)
		if l.Unlock != nil && l.Unlock.Detail == otherPart {
			l.To, l.Excused = l.From, true // it ended with that one, whenever that was
		}
		leases[o.Name] = append(leases[o.Name], l)
	}
	for _, all := range leases {
		slices.SortFunc(all, func(a, b *Lease) int { return cmp.Compare(a.From, b.From) })
	}
	return leases
}

// excuse ends a claim where an administrator has deleted the lock.
func (h *History) excuse(l *Lease) {
	for _, f := range h.Faults {
		if f.Name != l.Acquire.Name || f.Start > l.To || f.End < l.Acquire.Call && !h.vanished(l, f) || l.Acquire.Deadline > f.End+int64(h.ttl(f.Name)) {
			continue
		}
		l.To, l.Excused = min(l.To, f.Start), true
	}
}

// Claims is the first judge: by the library's own deadlines, no two owners have an
// exclusive lock at a time, and of two grants the later has the larger token.
func Claims(h *History) (violations []Violation) {
	for name, leases := range h.Leases() {
		violations = append(violations, overlaps(name, leases)...)
		if k := kindOf(name); k != nil && k.Fenced {
			violations = append(violations, inversions(name, leases)...)
		}
	}
	return violations
}

// overlaps sweeps over the claims in the order of their beginnings.
func overlaps(name string, leases []*Lease) (violations []Violation) {
	var open []*Lease
	for _, l := range leases {
		if l.To <= l.From {
			continue
		}
		open = slices.DeleteFunc(open, func(o *Lease) bool { return o.To <= l.From })
		for _, o := range open {
			if o.owner() == l.owner() || o.Acquire.Shared && l.Acquire.Shared {
				continue
			}
			violations = append(violations, Violation{
				"claims", "overlap", name, l.From,
				fmt.Sprintf("for %v: %v and %v", time.Duration(min(o.To, l.To)-l.From), o, l),
			})
		}
		open = append(open, l)
	}
	return violations
}

// inversions compares tokens in the order of the grants, which on one lock is that of
// the returns while exclusion holds. Readers that come together share a token, and one that
// comes in beside a writer that was downgraded has its.
func inversions(name string, leases []*Lease) (violations []Violation) {
	byToken := make(map[uint64]*Lease) // writers
	var writer, reader *Lease          // the last writer, and the reader with the largest token
	found := func(l *Lease, format string, args ...any) {
		violations = append(violations, Violation{"claims", "token", name, l.From, fmt.Sprintf(format, args...)})
	}
	for _, l := range leases {
		token, shared := l.Acquire.Token, l.Acquire.Shared
		if l.Acquire.Do == Several {
			continue // it has none
		}
		if token == 0 {
			found(l, "no token: %v", l)
			continue
		}
		if first, known := byToken[token]; !shared && known && first.owner() != l.owner() {
			found(l, "the same token: %v and %v", first, l)
		}
		if !shared && byToken[token] == nil {
			byToken[token] = l
		}
		if l.Excused {
			continue
		}
		same := writer != nil && writer.owner() == l.owner()
		switch {
		case writer != nil && (token < writer.Acquire.Token || same && token != writer.Acquire.Token):
			found(l, "%v and then %v", writer, l)
		case !shared && reader != nil && reader.owner() != l.owner() && token <= reader.Acquire.Token:
			found(l, "%v and then %v", reader, l)
		}
		if !shared {
			writer = l
		} else if reader == nil || token > reader.Acquire.Token {
			reader = l
		}
	}
	return violations
}
