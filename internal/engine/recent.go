package engine

// recent are entries of names that were in use lately. The registry keeps them when they are forgotten: programs make a handle for a
// name that comes out of their data, and names come again. To recall an entry costs a tenth less of a pair than to make one, with the
// names of all its keys. An entry that is in use again keeps its place. recent is guarded by Engine.mu.
type recent struct {
	ring []*entry
	next int // the place that is taken next, once all are
}

const (
	mostRecent = 4096
	// longestRecent bounds the memory of an entry that is kept, in bytes of its name.
	longestRecent = 256
)

// add gives an entry a place. It returns the entry that has had the place until now; nil: none.
func (r *recent) add(e *entry) (old *entry) {
	if len(r.ring) < mostRecent {
		r.ring = append(r.ring, e)
		return nil
	}
	old, r.ring[r.next] = r.ring[r.next], e
	r.next = (r.next + 1) % mostRecent
	return old
}
