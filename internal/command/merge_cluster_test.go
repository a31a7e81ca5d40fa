package command_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A cluster's calls are merged where their names have one {tag}, and go on when its slot moves.
func TestMerged_Cluster(t *testing.T) {
	c := redistest.StartCluster(t)
	x := executor(t, c.Client(t))
	all(t, x, acquire, "warm") // the slots are known from here on
	tagged := names(64, "{tag}:n%d")
	mixed := append(names(64, "n%d"), tagged...)
	lock := func() {
		t.Helper()
		for i, r := range all(t, x, acquire, mixed...) {
			granted(t, mixed[i], r)
		}
		for i, r := range all(t, x, release, mixed...) {
			granted(t, mixed[i], r)
		}
	}
	few(t, x, len(tagged), func() {
		for i, r := range all(t, x, acquire, tagged...) {
			granted(t, tagged[i], r)
		}
	})
	all(t, x, release, tagged...)
	lock()
	c.Migrate("{tag}", c.OtherMaster("{tag}"))
	redistest.Eventually(t, redistest.Patience, "the slots are known again", func() bool {
		for _, r := range all(t, x, acquire, tagged...) {
			if r.Outcome != command.Answered {
				return false
			}
		}
		return true
	})
	all(t, x, release, tagged...)
	lock()
}
