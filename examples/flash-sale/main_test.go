package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/example/exampletest"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

// A shop that dies with the lock, and the money, keeps nobody from buying and sells
// nothing twice.
func TestSale_GoesOnAfterACrash(t *testing.T) {
	t.Parallel()
	run := exampletest.Play(t)
	run.WantRight()
	run.Order("shop-1: stops: paying for phone 4", "-: shop-1 is killed", "-: sold 10, left 0")
	sold := run.Find(`^sold phone (\d+)$`)
	slices.Sort(sold) // lines of several processes can change places on their way here
	if got := strings.Join(sold, " "); got != "1 10 2 3 4 5 6 7 8 9" {
		t.Errorf("phones sold: %s", got)
	}
	if got, want := len(run.Find(`^(sold out)$`)), (shops-1)*crowd-7; got != want {
		t.Errorf("%d buyers were told that it is sold out, want %d", got, want)
	}
}

func TestRecipe_IsLockedForEver(t *testing.T) {
	t.Parallel()
	run := exampletest.Play(t, "--recipe")
	run.WantWrong("7 phones left, and nobody could buy them")
	if got := len(run.Find(`(goes home)`)); got != (shops-1)*crowd {
		t.Errorf("%d buyers went home, want all of %d", got, (shops-1)*crowd)
	}
}
