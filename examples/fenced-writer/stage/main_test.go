package main

import (
	"strconv"
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/stage/stagetest"
)

func TestMain(m *testing.M) { stagetest.Main(m, main) }

// The write of a process that was paused beyond its lease is rejected. What others wrote meanwhile stays.
func TestStore_RejectsTheOldToken(t *testing.T) {
	t.Parallel()
	run := stagetest.Play(t)
	run.WantRight()
	run.Order("-: writer-1 is paused", "writer-2: has written", "-: writer-3 is killed", "writer-4: has written",
		"-: writer-1 wakes up", "writer-1: is rejected: stale token 1", "-: the document: two four")
	tokens, last := run.Find(`token (\d+)$`), 0
	for _, token := range tokens {
		n, err := strconv.Atoi(token)
		if err != nil || n <= last {
			t.Errorf("token %s after %d, want them to grow", token, last)
		}
		last = n
	}
	if len(tokens) != 4 {
		t.Errorf("%d grants, want 4", len(tokens))
	}
}

func TestRecipe_IsOverwritten(t *testing.T) {
	t.Parallel()
	run := stagetest.Play(t, "--recipe")
	run.WantWrong("writer-1 has overwritten what came after it")
	run.Order("-: writer-1 wakes up", "writer-1: has written", "-: the document: one")
}
