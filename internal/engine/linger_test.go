package engine

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/lock"
)

// Each event of a lock that begins to linger while too many do ends another one, whatever has become of those before.
func TestLingering_EachOfTheOldestOnce(t *testing.T) {
	var l lingering
	holds, entries := make([]lock.Hold, mostLingering+3), make([]entry, mostLingering+3)
	for i := range holds {
		oldest := l.change(&entries[i], &holds[i])
		var want *lock.Hold
		if over := i - mostLingering; over >= 0 {
			want = &holds[over]
		}
		if oldest != want {
			t.Fatalf("the %d. is to end %p, want %p", i+1, oldest, want)
		}
	}
	for i := range entries {
		l.change(&entries[i], nil)
		l.change(&entries[i], nil)
	}
	if l.n != 0 || l.oldest != nil || l.newest != nil {
		t.Errorf("%d are left", l.n)
	}
}
