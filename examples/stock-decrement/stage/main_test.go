package main

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/stage/stagetest"
)

func TestMain(m *testing.M) { stagetest.Main(m, main) }

// Each service reads what was written last, although the work takes longer than the lease and one service dies in it.
func TestOrders_LoseNoUpdate(t *testing.T) {
	t.Parallel()
	run := stagetest.Play(t)
	run.WantRight()
	run.Order("service-1: reads 15", "-: service-1 is killed", "-: stock 11 after 4 orders")
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
	run := stagetest.Play(t, "--recipe")
	run.WantWrong("updates are lost")
	if got := len(run.Find(`^(writes)`)); got != 4 {
		t.Errorf("%d writes, want those of 4 orders", got)
	}
}

func TestAtomic_NeedsNoLock(t *testing.T) {
	t.Parallel()
	run := stagetest.Play(t, "--atomic")
	run.WantRight()
	run.Order("-: service-1 is killed", "-: stock 11 after 4 orders")
}
