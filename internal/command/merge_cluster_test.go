package command_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

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

// A plain client of a cluster's node does not know of slots: names of several ones are sent apart.
func TestMerged_PlainClientOfACluster(t *testing.T) {
	c := redistest.StartCluster(t)
	node := c.Owner("n0")
	x := executor(t, node.Client(t))
	names := names(64, "n%d")
	mine := 0
	for i, r := range all(t, x, acquire, names...) {
		if c.Owner(names[i]) == node {
			mine++
			granted(t, names[i], r)
		} else if (r.Outcome != command.Denied && r.Outcome != command.Barred) || !redis.HasErrorPrefix(r.Err, "MOVED") {
			t.Errorf("%s: %v, %v, %v", names[i], r.Outcome, r.Value, r.Err)
		}
	}
	if mine == 0 || mine == len(names) {
		t.Errorf("%d of the names are this node's", mine)
	}
}
