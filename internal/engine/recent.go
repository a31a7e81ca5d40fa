package engine

import "sync/atomic"

// recent are forgotten entries of names that were in use lately. Programs make a handle for a name that comes out of their data,
// and names come again: to recall an entry costs a tenth less of a pair than to make one, with the names of all its keys.
type recent struct {
	slots [1 << slotBits]atomic.Pointer[entry] // by a hash of the name: the last one that was forgotten; nil: none
}

const (
	slotBits = 12
	// longestRecent bounds the memory of an entry that is kept, in bytes of its name.
	longestRecent = 256
)

// slot is where the entries of a name are kept; nil: nowhere.
func (r *recent) slot(mapped string) *atomic.Pointer[entry] {
	if len(mapped) > longestRecent {
		return nil
	}
	hash := uint32(2166136261) // FNV-1a. It is the same in each run, as the simulation needs it
	for i := range len(mapped) {
		hash = (hash ^ uint32(mapped[i])) * 16777619
	}
	return &r.slots[(hash^hash>>slotBits)&(1<<slotBits-1)]
}

// keep keeps an entry that has been forgotten.
func (r *recent) keep(e *entry) {
	if slot := r.slot(e.mapped()); slot != nil && slot.Load() != e {
		slot.Store(e)
	}
}

// find returns the entry of a name; nil if it is not known any more. It may be in use again.
func (r *recent) find(n *named) *entry {
	slot := r.slot(n.Mapped)
	if slot == nil {
		return nil
	}
	e := slot.Load()
	if e == nil || e.lock.Family() != n.family || e.mapped() != n.Mapped {
		return nil
	}
	n.entry.Store(e)
	if keys := e.lock.Keys(); (keys.Token != nil) == n.Terms.Fencing {
		n.keys.CompareAndSwap(nil, keys)
	}
	return e
}
