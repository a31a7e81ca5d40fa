package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/stage/stagetest"
)

func TestMain(m *testing.M) { stagetest.Main(m, main) }

// A shop that dies with the lock, and the money, keeps no buyer away and sells no phone twice.
func TestSale_GoesOnAfterACrash(t *testing.T) {
	t.Parallel()
	run := stagetest.Play(t)
	run.WantRight()
	run.Order("shop-1: sold phone 3", "-: shop-1 is killed in the sale of phone 4", "-: sold 10, left 0")
	sold := run.Find(`^sold phone (\d+)$`)
	slices.Sort(sold) // lines of several processes can change places on their way here
	if got := strings.Join(sold, " "); got != "1 10 2 3 4 5 6 7 8 9" {
		t.Errorf("phones sold: %s", got)
	}
	if got, want := len(run.Find(`^(sold out)$`)), (shops-1)*crowd-7; got != want {
		t.Errorf("%d buyers came too late, want %d", got, want)
	}
}

func TestRecipe_IsLockedForever(t *testing.T) {
	t.Parallel()
	run := stagetest.Play(t, "--recipe")
	run.WantWrong("7 phones left, and no buyer could get them")
	if got := len(run.Find(`(goes home)`)); got != (shops-1)*crowd {
		t.Errorf("%d buyers went home, want all of %d", got, (shops-1)*crowd)
	}
}
