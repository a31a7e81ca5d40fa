package lock

import "slices"

// writeRules and readRules are those of the two sides of a read-write lock. A writer excludes all others. Readers share one hold
// where they can, whose last Unlock gives it back: a writer of another process may wait for that.
var (
	writeRules = rules{passes: true, lingers: true}
	readRules  = rules{shared: true, joint: true, lingers: true}
)

// Upgrades reports whether an owner of h that wants a lease of kind k would wait for itself.
func (h *Hold) Upgrades(k Kind) bool { return h.Kind == ReadKind && k == WriteKind }

// isLeftToReaders reports whether h is of the write side, and has leases of the read side only.
func (h *Hold) isLeftToReaders() bool {
	if h.Kind != WriteKind {
		return false
	}
	for l := h.leases; l != nil; l = l.next {
		if l.kind == WriteKind {
			return false
		}
	}
	return true
}

// shares reports whether a reader can use the read hold h of another. One with a limit
// or an end of its own cannot; nor one that needs a token, if h has a writer's, which excluded it.
func (h *Hold) shares(r *By) bool {
	return kinds[h.Kind].joint && h.serves(r) && !h.Terms.Fixed && h.Terms.MaxHold == 0 && h.Terms.AtLeast == 0 && !(h.Terms.Fencing && h.origin == byDowngrade)
}

// joins reports whether a new reader may come in on h: not if Extend has made it last for longer,
// see passes.
func (h *Hold) joins(m *Moment, r *By) bool {
	return h.shares(r) && !h.extended && h.demand != demandKnown && h.sound(m)
}

// enterBeside lets w's caller in on a hold that it can share, if there is one.
func (lk *Lock) enterBeside(m *Moment, w *Waiter) *Lease {
	for _, h := range lk.shared.all() {
		if h.joins(m, &w.By) {
			lk.askDemand(m, h)
			return h.grant(&w.By, ByHandoff, m.Age())
		}
	}
	return nil
}

// share lets in the readers from w on, up to the next writer, that can use the
// read hold h. They have waited for another owner if waited.
func (lk *Lock) share(m *Moment, h *Hold, w *Waiter, waited bool) {
	at := m.Age()
	for next := w; w != nil && kinds[w.Kind].joint; w = next {
		next = w.next
		if h.shares(&w.By) {
			if waited {
				w.waited()
			}
			lk.deliver(m, w, h.grant(&w.By, ByHandoff, at), nil)
		}
	}
}

// sharedHolds are the holds of a lock beside which there can be others: of readers mostly one, shared by all readers of the
// process; of a semaphore one for each owner of permits. A nil one is empty.
type sharedHolds struct {
	holds      []*Hold
	converting *Downgrade // the latest; nil: there was none
}

func (lk *Lock) addShared(h *Hold) {
	if lk.shared == nil {
		lk.shared = new(sharedHolds)
	}
	lk.shared.holds = append(lk.shared.holds, h)
}

// remove takes h out, which ends in this way. The downgrade that was to make it ends too.
func (r *sharedHolds) remove(m *Moment, h *Hold, end *Verdict) {
	if r == nil {
		return
	}
	r.holds = slices.DeleteFunc(r.holds, func(x *Hold) bool { return x == h })
	if r.converts(h) {
		r.converting.abandon(m, end)
	}
	if d := r.converting; d != nil && d.Reader == h {
		r.converting = nil // an entry that is kept for its name (engine/registry.go) keeps no lease
	}
}

func (r *sharedHolds) none() bool { return r == nil || len(r.holds) == 0 }

// converts reports whether a downgrade is to make h, and Redis has not answered it.
func (r *sharedHolds) converts(h *Hold) bool {
	return r != nil && r.converting != nil && r.converting.Reader == h && !r.converting.settled
}

func (r *sharedHolds) all() []*Hold {
	if r == nil {
		return nil
	}
	return r.holds
}
