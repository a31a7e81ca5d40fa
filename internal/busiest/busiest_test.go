package busiest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func names(counts []Count) (all []string) {
	for _, c := range counts {
		all = append(all, c.Name)
	}
	return all
}

func TestNames_AreInOrder(t *testing.T) {
	var s Names
	for name, n := range map[string]int{"a": 3, "b": 5, "c": 1, "d": 3} {
		s.Add(name, n, 0)
	}
	if got := names(s.Top(3, 0)); !slices.Equal(got, []string{"b", "a", "d"}) {
		t.Errorf("%q", got)
	}
	if got := s.Top(10, 0); len(got) != 4 || got[0] != (Count{"b", 5, 0}) {
		t.Errorf("%v", got)
	}
	if got := s.Top(-1, 0); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

// A count halves with each minute, and is dropped when nothing is left of it. What comes late counts as what it is.
func TestNames_Decay(t *testing.T) {
	var s Names
	s.Add("a", 8, 5)
	s.Add("b", 2, 6)
	s.Add("c", 8, 5)
	for _, want := range []struct {
		minute uint32
		a, b   float64
	}{{6, 4, 2}, {7, 2, 1}, {5, 2, 1}, {9, .5, .25}} {
		got := make(map[string]float64)
		for _, c := range s.Top(3, want.minute) {
			got[c.Name] = c.Events
		}
		if got["a"] != want.a || got["b"] != want.b || got["c"] != want.a {
			t.Errorf("in minute %d: %v", want.minute, got)
		}
	}
	if got := s.Top(3, 5000); len(got) != 0 {
		t.Errorf("after days: %v", got)
	}
	s.Add("a", 1, 5001)
	if got := s.Top(1, 5001); got[0].Events != 1 {
		t.Errorf("%v", got)
	}
}

// Of many more names than there are slots, the frequent ones are found, and no count is too small, nor too large by more than
// its excess.
func TestNames_OfAStream(t *testing.T) {
	const frequent, share, events, seed = 20, 50, 200_000, 7
	r := rand.New(rand.NewPCG(seed, seed))
	var s Names
	truth := make(map[string]float64)
	for range events {
		name := fmt.Sprint("rare ", r.IntN(100_000))
		if k := r.IntN(share); k < frequent {
			name = fmt.Sprint("frequent ", k)
		}
		truth[name]++
		s.Add(name, 1, 0)
	}
	all := s.Top(1000, 0)
	if len(all) != slotCount {
		t.Errorf("%d slots", len(all))
	}
	for i, c := range all {
		if n := truth[c.Name]; c.Events < n || c.Events-c.Excess > n {
			t.Errorf("%v, and it happened %v times", c, n)
		}
		if i < frequent && truth[c.Name] < events/share/2 {
			t.Errorf("%v is one of the first %d", c, frequent)
		}
	}
}
