package lock

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// However many come before they are asked for, each is there, once.
func TestEarlyNotices_NoneIsForgotten(t *testing.T) {
	var early earlyNotices
	const n = 10_000
	now := time.Now()
	for i := range uint64(n) {
		early.keep(wire.Notice{Number: i}, now.Add(time.Duration(i)*MaxClaim/n))
	}
	for i := range uint64(n) {
		if x := early.take(i); x == nil || x.Number != i {
			t.Fatalf("of %d there is %v", i, x)
		}
		if x := early.take(i); x != nil {
			t.Fatalf("of %d there is another one", i)
		}
	}
}

// No request takes the messages of claims that have been given up.
func TestEarlyNotices_GoWithTheirGeneration(t *testing.T) {
	var early earlyNotices
	now := time.Now()
	for i := range uint64(100) {
		early.keep(wire.Notice{Number: i}, now.Add(time.Duration(i)*MaxClaim/2))
	}
	if n := len(early.young) + len(early.old); n > 6 {
		t.Errorf("%d are kept, of which two come in the time of a claim", n)
	}
	if early.take(97) == nil {
		t.Error("one that is younger than a claim is gone")
	}
}
