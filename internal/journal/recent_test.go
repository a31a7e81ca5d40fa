package journal

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// The latest lines are there even if no logger writes them, and many lines about locks do not displace the others.
func TestJournal_Recent(t *testing.T) {
	j := New(slog.New(slog.DiscardHandler))
	j.Unavailable(errGone)
	j.Say(slog.LevelDebug, "the same again")
	const n = 10 * recentLocks
	for i := range n {
		j.Lost(fmt.Sprint("lock:", i), "deadline")
	}
	j.AvailableAgain(1500 * time.Millisecond)
	got := j.Recent()
	if len(got) != recentLocks+2 {
		t.Fatalf("%d events", len(got))
	}
	first, last := got[0], got[len(got)-1]
	if first.Text != "holdfast: redis does not answer" || first.Details() != "error: gone" || last.Text != "holdfast: redis answers again" || last.Details() != "lasted: 1.5s" {
		t.Errorf("the first is %q %q, the last %q %q", first.Text, first.Details(), last.Text, last.Details())
	}
	for i, e := range got[1 : len(got)-1] {
		if want := fmt.Sprint("lock:", n-recentLocks+i); e.Lock != want || !strings.Contains(e.Details(), "reason: deadline") {
			t.Errorf("event %d is about %s, want %s", i, e.Lock, want)
		}
	}
}
