package chaos

import (
	"slices"
	"strings"
	"time"
)

// Half of the client processes keep locks after Unlock (WithLinger). Redis then has a hold that no caller has. The judges allow for
// that: such a hold may stay for the process's linger time, and the process may give it up at any moment. But a caller that waits
// behind it waits for a free lock (Wakes), and a TryLock may be refused because of it only where the holder does not answer, or
// another caller waits.

// mostLinger is the longest time for which a process keeps a lock, if the run does not say another. It is longer than a second, after
// which a process looks for waiters that cannot ask.
const mostLinger = 2 * time.Second

// answerWait is for how long a TryLock waits, at least, for the answer of a holder that may keep the lock.
const answerWait = 100 * time.Millisecond

// lingers is for how long a process keeps locks, each for another time; 0: it keeps none.
func (r *run) lingers(proc int) time.Duration {
	if (r.cfg.Seed+uint64(proc))%2 != 0 {
		return 0
	}
	return r.cfg.Linger / time.Duration(proc+1)
}

// lingers reports whether the hold's process may keep the lock after Unlock: the owner's number begins with 0.
func (h *Hold) lingers() bool {
	_, number, _ := strings.Cut(h.Owner, ":")
	return strings.HasPrefix(number, "0")
}

// kept reports whether a process that keeps locks had this one during o.
func (b *builder) kept(o *Op) bool {
	if b.keepers == nil {
		b.keepers = slices.DeleteFunc(slices.Clone(b.h.Truth.Holds[b.name]), func(hold *Hold) bool { return !hold.lingers() })
	}
	return slices.ContainsFunc(b.keepers, func(hold *Hold) bool { return hold.Start.Lo <= o.Return && hold.End.Hi >= o.Call })
}

// idle reports whether the hold's process keeps locks, and may have given this one up while no caller had it.
func (h *History) idle(hold *Hold, leases []*Lease) bool {
	return hold.lingers() && !slices.ContainsFunc(leases, func(l *Lease) bool {
		return h.process(l.Acquire.Proc).Prefix == hold.prefix() && l.Acquire.Shared == !hold.Write && l.From <= hold.End.Lo && l.To >= hold.End.Hi
	})
}

// vanished reports whether an administrator took away, before the lease, what its process kept. Until its next renewal the process
// believes that it has it, and gives it to its callers.
func (h *History) vanished(l *Lease, f Fault) bool {
	return slices.ContainsFunc(h.Truth.Holds[f.Name], func(hold *Hold) bool {
		return hold.lingers() && hold.prefix() == h.process(l.Acquire.Proc).Prefix && hold.End.Hi >= f.Start && hold.End.Lo <= f.End
	})
}

// takenUp counts the grants of locks that their processes had kept.
func (h *History) takenUp() (n int) {
	for name, leases := range h.Leases() {
		for _, p := range h.Processes {
			own := leasesOf(leases, p.ID)
			for _, hold := range h.Truth.Holds[name] {
				if hold.prefix() != p.Prefix || !hold.lingers() {
					continue
				}
				over := int64(0) // when the last lease ended that stood on it before; 0: none has
				for _, l := range own {
					if l.From < hold.Start.Hi || l.From > hold.End.Lo {
						continue
					}
					if over != 0 && l.Acquire.Call > over {
						n++
					}
					over = max(over, l.over())
				}
			}
		}
	}
	return n
}
