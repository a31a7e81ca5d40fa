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
	if got, want := strings.Join(run.Find(`^((?:reads|writes) \d+)$`), ", "),
		"reads 15, reads 15, writes 14, reads 14, writes 13, reads 13, writes 12, reads 12, writes 11"; got != want {
		t.Errorf("history: %s\nwant     %s", got, want)
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
