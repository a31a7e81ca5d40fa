package main

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/stage/stagetest"
)

func TestMain(m *testing.M) { stagetest.Main(m, main) }

// Each step is done once and in order, although one replica dies and another gets stuck.
func TestJob_IsTakenOver(t *testing.T) {
	t.Parallel()
	run := stagetest.Play(t)
	run.WantRight()
	run.Order("replica-1: begins step 3", "-: replica-1 is killed in step 3")
	if got := strings.Join(run.Find(`^has done step (\d)$`), " "); got != "1 2 3 4 5 6" {
		t.Errorf("steps done: %s", got)
	}
	if got := len(run.Find(`^(steps down)`)); got != 1 {
		t.Errorf("%d replicas stepped down, want the one that hung", got)
	}
	if got := len(run.Find(`(sees that the job is done)`)); got != 2 {
		t.Errorf("%d replicas see the end, want both that live", got)
	}
}

// The recipe outlives the crash, but not the replica that hangs.
func TestRecipe_IsStuckForever(t *testing.T) {
	t.Parallel()
	run := stagetest.Play(t, "--recipe")
	run.WantWrong("still at step 5")
	if got := strings.Join(run.Find(`^has done step (\d)$`), " "); got != "1 2 3 4" {
		t.Errorf("steps done: %s", got)
	}
}
