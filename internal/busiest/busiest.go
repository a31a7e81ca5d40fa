// Package busiest finds the names to which something happens most often, in little memory however many names there are.
//
// It is the algorithm Space-Saving (Metwally, Agrawal, El Abbadi, "Efficient computation of frequent and top-k elements in
// data streams", 2005): there are a few slots, each with a name and a count. A name that has no slot takes the slot with
// the least count and inherits that count. So a count can be too large, by no more than what it has inherited, and a name
// to which more than the slots' share of all events happens always has a slot.
//
// Counts halve with each minute: the names are those of lately.
package busiest

import (
	"cmp"
	"slices"
	"sync"
)

// slotCount is how many names are known at a time.
const slotCount = 256

// Names counts events by name. The zero value is empty. It is safe for concurrent use.
type Names struct {
	mu     sync.Mutex // guards the following
	slots  map[string]*Count
	minute uint32 // of the counts
}

// Count is how often something happened to a name. An event of a minute ago counts half.
type Count struct {
	Name   string
	Events float64
	Excess float64 // at most so many of Events happened to other names
}

// Add counts n events of name in that minute. Minutes have a common beginning.
func (s *Names) Add(name string, n int, minute uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decay(minute)
	count := float64(n)
	for m := minute; m < s.minute && count > negligible; m++ { // events of before
		count /= 2
	}
	if c := s.slots[name]; c != nil {
		c.Events += count
		return
	}
	c := &Count{Name: name, Events: count}
	if len(s.slots) >= slotCount {
		least := s.least()
		delete(s.slots, least.Name)
		c.Events, c.Excess = least.Events+count, least.Events
	}
	if s.slots == nil {
		s.slots = make(map[string]*Count, slotCount)
	}
	s.slots[name] = c
}

// negligible is a count that is dropped: one event of ten minutes ago.
const negligible = 1. / 1024

// decay halves the counts for each minute that has begun.
func (s *Names) decay(minute uint32) {
	for ; s.minute < minute && len(s.slots) > 0; s.minute++ {
		for name, c := range s.slots {
			if c.Events, c.Excess = c.Events/2, c.Excess/2; c.Events < negligible {
				delete(s.slots, name)
			}
		}
	}
	s.minute = max(s.minute, minute)
}

func (s *Names) least() *Count {
	var least *Count
	for _, c := range s.slots {
		if least == nil || c.Events < least.Events {
			least = c
		}
	}
	return least
}

// Top returns the n names with the largest counts in that minute, the largest first.
func (s *Names) Top(n int, minute uint32) []Count {
	s.mu.Lock()
	s.decay(minute)
	all := make([]Count, 0, len(s.slots))
	for _, c := range s.slots {
		all = append(all, *c)
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(a.Name, b.Name))
	})
	return all[:max(0, min(n, len(all)))]
}
