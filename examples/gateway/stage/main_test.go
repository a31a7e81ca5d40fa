package main

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/stage/stagetest"
)

func TestMain(m *testing.M) { stagetest.Main(m, main) }

// Both users get one gift, even the one whose gateway died over it.
func TestGateway_GivesEachUserOneGift(t *testing.T) {
	t.Parallel()
	run := stagetest.Play(t)
	run.WantRight()
	run.Index("-", "gateway-3 is killed before it has given")
	if got := strings.Join(run.Find(`^gave (\w+) a gift$`), " "); got != "ada grace" {
		t.Errorf("gifts go to %s, want one to ada and one to grace", got)
	}
}

// A request that takes longer than the expiry is not alone.
func TestRecipe_GivesTwice(t *testing.T) {
	t.Parallel()
	run := stagetest.Play(t, "--recipe")
	run.WantWrong("ada got ")
	if got := strings.Join(run.Find(`^gave (ada) a gift$`), " "); !strings.HasPrefix(got, "ada ada") {
		t.Errorf("gifts to ada: %q, want more than one", got)
	}
}
