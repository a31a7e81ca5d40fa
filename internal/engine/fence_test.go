package engine

import (
	"fmt"
	"testing"
)

func TestTokenMarks_AreBoundedAndNeverGoBack(t *testing.T) {
	var marks tokenMarks
	marks.saw("a", 7)
	marks.saw("a", 5)
	if got := marks.seen("a"); got != 7 {
		t.Errorf("the mark went back to %d", got)
	}
	for i := range tokenGeneration {
		marks.saw(fmt.Sprint(i), 1)
	}
	if got := marks.seen("a"); got != 7 {
		t.Error("forgotten within a generation")
	}
	marks.saw("a", 6)
	for i := range tokenGeneration - 1 {
		marks.saw(fmt.Sprint("b", i), 1)
	}
	marks.saw("c", 1)
	if got := marks.seen("a"); got != 7 {
		t.Errorf("the mark went back to %d with the generation", got)
	}
	for i := range 10 * tokenGeneration {
		marks.saw(fmt.Sprint("x", i), 1)
	}
	if n := len(marks.young) + len(marks.old); n > 2*tokenGeneration {
		t.Errorf("%d names are remembered", n)
	}
}
