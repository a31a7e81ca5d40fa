package holdfast

import "github.com/holdfast-go/holdfast/internal/lock"

// LeaseOf makes a lease of several locks of leases that were granted, which so many of them are enough for.
func LeaseOf(m *Manager, need int, parts ...*Lease) *Lease {
	g := newGroup(&handle{m: m, lock: m.engine.NewLock(lock.RedlockKind, "whole", "", nil)}, need)
	for _, p := range parts {
		g.join(p.inner())
	}
	return (*Lease)(g.lease)
}
