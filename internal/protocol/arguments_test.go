package protocol_test

import (
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// What is put together here is what the scripts take apart.
func TestArguments_AreReadAsTheyAreWritten(t *testing.T) {
	rdb := redistest.Start(t).Admin()
	read := func(library, function, rest, argument string) string {
		t.Helper()
		script := protocol.Function(library, function) + "local all = {" + function + rest + "}\nfor i, part in ipairs(all) do all[i] = type(part) .. ' ' .. part end\nreturn all\n"
		all, err := rdb.Eval(t.Context(), script, nil, argument).StringSlice()
		if err != nil {
			t.Fatalf("%q: %v", argument, err)
		}
		return fmt.Sprintf("%q", all)
	}
	for _, counted := range []bool{false, true} {
		for _, turn := range []int{1, 9, 17} {
			offer := protocol.Offer(7500, turn, counted)
			n := map[bool]int{true: 1}[counted]
			parts := func(publish string) string {
				return fmt.Sprintf("%q", []string{"string 7500", fmt.Sprint("string ", turn), fmt.Sprint("string ", n), "string " + publish})
			}
			if got := read("grant", "offer_of", "(ARGV[1])", offer); got != parts("") {
				t.Errorf("%q is read as %s", offer, got)
			}
			for place, word := range map[lock.Place]string{lock.NoPlace: "none", lock.NewPlace: "new", lock.SamePlace: "same", lock.AskPlace: "ask"} {
				for _, deaf := range []bool{false, true} {
					stand := protocol.Stand(place, deaf, 5000)
					want := []string{"string " + word, "number 6000", "string "}
					if deaf {
						want[1] = "number 6000.5"
					}
					if got := read("place", "place_of", "(ARGV[1], 1000)", stand); got != fmt.Sprintf("%q", want) {
						t.Errorf("%q is read as %s", stand, got)
					}
					for _, publish := range []string{"publish", "spublish"} {
						wait := protocol.Wait(stand, offer, publish)
						want[2] = "string " + offer + " " + publish
						if got := read("place", "place_of", "(ARGV[1], 1000)", wait); got != fmt.Sprintf("%q", want) {
							t.Errorf("%q is read as %s", wait, got)
						}
						if got := read("grant", "offer_of", "(ARGV[1])", offer+" "+publish); got != parts(publish) {
							t.Errorf("%q is read as %s", offer+" "+publish, got)
						}
					}
				}
			}
		}
	}
}
