package main

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/example/exampletest"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

// Whoever reads the stock reads what was written last, although the work takes longer
// than the lease and one service dies in it.
func TestOrders_LoseNoUpdate(t *testing.T) {
	t.Parallel()
	run := exampletest.Play(t)
	run.WantRight()
	run.Order("service-1: stops: working", "-: service-1 is killed", "-: stock 11 after 4 orders")
	// Lines of two processes can change places on their way here; those of a kind are far
	// apart. The first 15 is what the service that died had read.
	for kind, want := range map[string]string{"reads": "15 15 14 13 12", "writes": "14 13 12 11"} {
		if got := strings.Join(run.Find(`^`+kind+` (\d+)$`), " "); got != want {
			t.Errorf("%s %s, want %s", kind, got, want)
		}
	}
}

func TestRecipe_LosesUpdates(t *testing.T) {
	t.Parallel()
	run := exampletest.Play(t, "--recipe")
	run.WantWrong("updates are lost")
	if got := len(run.Find(`^(writes)`)); got != 4 {
		t.Errorf("%d writes, want those of 4 orders", got)
	}
}

func TestAtomic_NeedsNoLock(t *testing.T) {
	t.Parallel()
	run := exampletest.Play(t, "--atomic")
	run.WantRight()
	run.Order("-: service-1 is killed", "-: stock 11 after 4 orders")
}
