package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
)

// How long Redis may keep a hold without a lease: a request may be repeated
// and a tombstone left, but nothing is renewed, so that the TTL ends it. Before that, the process may keep the lock.
func (h *History) tidy(name string, p *Process) int64 {
	return int64(h.ttl(name) + 2*time.Second + p.Linger)
}

// Truths is the second judge: what the server's file shows and what it says of the
// claims.
func Truths(h *History) (violations []Violation) {
	for _, f := range h.Truth.Findings {
		if f.Rule == "exclusion" && h.excused(f.Name, f.At) {
			continue
		}
		violations = append(violations, Violation{"truth", f.Rule, f.Name, f.At, f.Text})
	}
	for name, leases := range h.Leases() {
		for _, p := range h.Processes {
			own := leasesOf(leases, p.ID)
			violations = append(violations, h.uncovered(name, p, own)...)
			violations = append(violations, h.forsaken(name, p, own)...)
			violations = append(violations, h.resurrected(name, p, own)...)
		}
	}
	violations = append(violations, h.disorder()...)
	return append(violations, h.taken()...)
}

// disorder finds fair locks that Redis gave to one that came later, while who came
// earlier stood in the queue all the time.
func (h *History) disorder() (violations []Violation) {
	for i := range Kinds {
		k := &Kinds[i]
		for _, name := range k.names() {
			if t := h.Truth.Turns[name]; k.Fair && t != nil && t.Overtaken > 0 {
				violations = append(violations, Violation{
					"truth", "order", name, t.At,
					fmt.Sprintf("%d of %d were overtaken, one by %d: %s", t.Overtaken, t.Waited, t.Most, t.First),
				})
			}
		}
	}
	return violations
}

func leasesOf(leases []*Lease, proc int) (own []*Lease) {
	for _, l := range leases {
		if l.Acquire.Proc == proc {
			own = append(own, l)
		}
	}
	return own
}

// excused reports whether an administrator has had a hand in the lock within a lease.
func (h *History) excused(name string, at int64) bool {
	for _, f := range h.Faults {
		if f.Name == name && f.Start <= at && at <= f.End+int64(h.ttl(name)) {
			return true
		}
	}
	return false
}

// uncovered finds claims at a time when the process certainly had no hold, and losses
// reported of a hold that Redis still had.
func (h *History) uncovered(name string, p *Process, leases []*Lease) (violations []Violation) {
	match := func(exclusive bool) func(*Hold) bool {
		return func(o *Hold) bool { return o.prefix() == p.Prefix && (o.Write || !exclusive) }
	}
	absent := map[bool][]Span{
		true:  h.Truth.absent(name, match(true)),
		false: h.Truth.absent(name, match(false)),
	}
	for _, l := range leases {
		for _, gap := range absent[!l.Acquire.Shared] {
			if from, to := max(gap.Lo, l.From), min(gap.Hi, l.To); from < to {
				violations = append(violations, Violation{
					"truth", "claim without hold", name, from,
					fmt.Sprintf("for %v: %v", time.Duration(to-from), l),
				})
			}
		}
		u := l.Unlock
		if u == nil || u.Result != Lost {
			continue
		}
		switch u.Detail {
		case otherPart: // judged there
		case maxHold:
			if l.Acquire.Limit == 0 || u.Return < l.Acquire.Limit {
				violations = append(violations, Violation{"truth", "false loss", name, u.Return, "before its limit: " + l.String()})
			}
		case string(holdfast.LostDeadline):
			if u.Return < u.Deadline {
				violations = append(violations, Violation{"truth", "false loss", name, u.Return, "before its deadline: " + l.String()})
			}
			if !l.Acquire.Fixed && !h.caused(u) {
				violations = append(violations, Violation{"truth", "lost without cause", name, u.Return, l.String()})
			}
		default:
			for _, o := range h.Truth.Holds[name] {
				if match(!l.Acquire.Shared)(o) && o.Start.Hi <= l.From && o.End.Lo >= u.Return {
					violations = append(violations, Violation{"truth", "false loss", name, u.Return, l.String()})
				}
			}
		}
	}
	return violations
}

// resurrected finds owners that hold again after an end that a caller has seen. A grant
// that no caller learned of may be taken back and made again. Where readers of a process have two holds, which terms of
// their own make, no lease says on which of them it stood.
func (h *History) resurrected(name string, p *Process, leases []*Lease) (violations []Violation) {
	over := make(map[string]bool) // owners that had a lease and ended
	for _, o := range h.Truth.Holds[name] {
		if o.prefix() != p.Prefix {
			continue
		}
		if over[o.Owner] {
			violations = append(violations, Violation{"truth", "resurrection", name, o.Start.Lo, o.Owner + " holds again after its end"})
		}
		over[o.Owner] = over[o.Owner] || slices.ContainsFunc(leases, func(l *Lease) bool {
			return l.Acquire.Shared == !o.Write && max(l.From, o.Start.Hi) < min(l.To, o.End.Lo) && !h.elsewhere(l, o)
		})
	}
	return violations
}

// elsewhere reports whether the lease may have come during another hold of hold's process.
func (h *History) elsewhere(l *Lease, hold *Hold) bool {
	return slices.ContainsFunc(h.Truth.Holds[hold.Name], func(o *Hold) bool {
		return o.prefix() == hold.prefix() && o.Write == hold.Write && o.Owner != hold.Owner && o.Start.Lo <= l.From && o.End.Hi >= l.From
	})
}

// forsaken finds holds that lived on without a lease.
func (h *History) forsaken(name string, p *Process, leases []*Lease) (violations []Violation) {
	for _, o := range h.Truth.Holds[name] {
		if o.prefix() != p.Prefix || !o.Write && p.Died != never {
			continue // a dead reader's field may stay: other readers keep the key
		}
		needed := o.Start.Hi
		for _, l := range leases {
			if l.Acquire.Call <= o.End.Hi && l.over() >= o.Start.Lo {
				needed = max(needed, min(l.over(), p.Died))
			}
		}
		if needed == never || o.End.Lo == never && h.End < needed+h.tidy(name, p) {
			continue
		}
		if left := min(o.End.Lo, h.End) - needed - h.stalled(name, needed, p); left > h.tidy(name, p) {
			violations = append(violations, Violation{
				"truth", "forsaken hold", name, needed,
				fmt.Sprintf("%s stayed for %v without a lease", o.Owner, time.Duration(left)),
			})
		}
	}
	return violations
}

// stalled is for how long, from a moment on, the process could not tidy up: faults that
// hit it or the server, one after the other.
func (h *History) stalled(name string, from int64, p *Process) (sum int64) {
	all := append(slices.Clone(h.Faults), h.Stalls...)
	slices.SortFunc(all, func(a, b Fault) int { return cmp.Compare(a.Start, b.Start) })
	for _, f := range all {
		if f.Name == "" && (f.Proc == p.ID || f.Proc < 0) && f.End > from && f.Start < from+sum+h.tidy(name, p) {
			sum += f.End - max(f.Start, from)
		}
	}
	return sum
}

// taken finds holds that were deleted before their time, as far as that is certain, and not by
// a release of their own process.
func (h *History) taken() (violations []Violation) {
	leases := h.Leases()
	for name, holds := range h.Truth.Holds {
		for _, o := range holds {
			if inTime := o.ends() == 0 || o.End.Hi < o.ends(); o.EndedBy != "del" || !inTime || h.excused(name, o.End.Lo) || h.excused(name, o.End.Hi) || h.released(o) || h.idle(o, leases[name]) {
				continue
			}
			violations = append(violations, Violation{
				"truth", "hold deleted", name, o.End.Lo,
				fmt.Sprintf("%s, with %v to go", o.Owner, time.Duration(o.ends()-o.End.Lo)),
			})
		}
	}
	return violations
}

// released reports whether the hold's process was giving it up, or a grant that no caller
// wanted any more, when it ended.
func (h *History) released(hold *Hold) bool {
	for _, o := range h.Ops {
		if o.Name == hold.Name && h.process(o.Proc).Prefix == hold.prefix() && (o.Do == Unlock || o.Do == Several || o.acquires() && o.Result != OK) &&
			o.Call <= hold.End.Hi && min(o.Return, h.process(o.Proc).Died)+int64(grace) >= hold.End.Lo {
			return true
		}
	}
	return false
}

// harmless are the faults that must not cost a holder its lease: a renewal is repeated in time.
var harmless = map[string]bool{"kill connections": true, "kill subscriptions": true, "flush scripts": true, "swallow a renewal's reply": true}

// caused reports whether something was wrong, with the process, the server or the lock, when the lease
// should have been renewed that u found to have reached its deadline.
func (h *History) caused(u *Op) bool {
	ttl := h.ttl(u.Name)
	from := u.Deadline - int64(ttl) - int64(recovery(ttl))
	return slices.ContainsFunc(slices.Concat(h.Faults, h.Stalls), func(f Fault) bool {
		return !harmless[f.Kind] && (f.Name == "" && (f.Proc == u.Proc || f.Proc < 0) || f.Name == u.Name) && f.Start <= u.Deadline && f.End >= from
	})
}
