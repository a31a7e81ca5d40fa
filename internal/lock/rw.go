package lock

// writeRules and readRules are those of the two sides of a read-write lock. A writer excludes all others. Readers share one hold
// where they can, whose last Unlock gives it back: a writer of another process may wait for that.
var (
	writeRules = rules{passes: true, lingers: true}
	readRules  = rules{company: joint, lingers: true}
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
	return kinds[h.Kind].company == joint && h.serves(r) && !h.Terms.Fixed && h.Terms.MaxHold == 0 && h.Terms.AtLeast == 0 && !(h.Terms.Fencing && h.origin == byDowngrade)
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
	for next := w; w != nil && kinds[w.Kind].company == joint; w = next {
		next = w.next
		if h.shares(&w.By) {
			if waited {
				w.Waited = true
			}
			lk.deliver(m, w, h.grant(&w.By, ByHandoff, at), nil)
		}
	}
}
