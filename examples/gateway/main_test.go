package main

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/example/exampletest"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

// Both users get one gift, also the one whose gateway died over it.
func TestGateway_GivesEachUserOneGift(t *testing.T) {
	t.Parallel()
	run := exampletest.Play(t)
	run.WantRight()
	run.Order("gateway-3: stops: giving grace a gift", "-: gateway-3 is killed")
	if got := strings.Join(run.Find(`^gives (\w+) a gift$`), " "); got != "ada grace" {
		t.Errorf("gifts go to %s, want one to ada and one to grace", got)
	}
}

// A request that takes longer than the expiry is not alone.
func TestRecipe_GivesTwice(t *testing.T) {
	t.Parallel()
	run := exampletest.Play(t, "--recipe")
	run.WantWrong("ada got ")
	if got := strings.Join(run.Find(`^gives (ada) a gift$`), " "); !strings.HasPrefix(got, "ada ada") {
		t.Errorf("gifts to ada: %q, want more than one", got)
	}
}
