package chaos

import (
	"cmp"
	"slices"
	"strings"
)

// clockKey is what the run writes all the time: the number of a tick.
const clockKey = "chaos:clock"

// Tick is one write of the clock key. Whatever stands behind it in the server's file
// was executed after Sent; what stands before it, before Received.
type Tick struct{ Sent, Received int64 }

// Span is when something happened: not before Lo and not after Hi.
type Span struct{ Lo, Hi int64 }

// Hold is one owner's stay in a lock's hash.
type Hold struct {
	Name, Owner string
	Write       bool // the write side of a read-write lock
	Start, End  Span // End is never, never while it lasts
	Expires     int64
	EndedBy     string // "hdel", "del", "expiry", "overwritten"; empty while it lasts
	Right       int64  // of a reader: when its own right ends, whatever others do to the hash
}

// prefix is the manager's part of the owner id.
func (h *Hold) prefix() string {
	p, _, _ := strings.Cut(h.Owner, ":")
	return p
}

// shares reports whether two holds of one lock may exist together.
func (h *Hold) shares(o *Hold) bool {
	return !h.Write && !o.Write || ownerOf(h.Owner) == ownerOf(o.Owner) // a writer may read as well
}

// ownerOf is the owner of an id, whichever side of a read-write lock it is for.
func ownerOf(owner string) string { return strings.TrimSuffix(owner, ":write") }

// Finding is something that the server's file itself shows to be wrong.
type Finding struct {
	Rule, Name, Text string
	At               int64
}

// Truth is the server's file, replayed.
type Truth struct {
	Holds    map[string][]*Hold // by lock, in the order of their starts
	Findings []Finding
	Turns    map[string]*Turns // by lock
	Queued   map[string][]Span // by lock: from when to when a waiter stood in its queue
	Writes   int
}

// ends is when the hold ends if nothing else happens; 0: never.
func (h *Hold) ends() int64 {
	if h.Right != 0 {
		return min(h.Right, h.Expires)
	}
	return h.Expires
}

// absent returns the times at which the lock certainly had no hold that matches.
func (t *Truth) absent(name string, match func(*Hold) bool) (free []Span) {
	var present []Span
	for _, h := range t.Holds[name] {
		if match(h) {
			present = append(present, Span{h.Start.Lo, h.End.Hi})
		}
	}
	slices.SortFunc(present, func(a, b Span) int { return cmp.Compare(a.Lo, b.Lo) })
	from := int64(0)
	for _, p := range present {
		if p.Lo > from {
			free = append(free, Span{from, p.Lo})
		}
		from = max(from, p.Hi)
	}
	if from < never {
		free = append(free, Span{from, never})
	}
	return free
}
