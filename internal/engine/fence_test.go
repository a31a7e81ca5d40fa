package engine

import (
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestTokenMarks_AreBoundedAndNeverGoBack(t *testing.T) {
	var marks tokenMarks
	marks.saw("a", 7)
	marks.saw("a", 5)
	redistest.Want(t, marks.seen("a"), 7, "the mark went back to %d")
	for i := range tokenGeneration {
		marks.saw(fmt.Sprint(i), 1)
	}
	redistest.Want(t, marks.seen("a"), 7, "forgotten within a generation")
	marks.saw("a", 6)
	for i := range tokenGeneration - 1 {
		marks.saw(fmt.Sprint("b", i), 1)
	}
	marks.saw("c", 1)
	redistest.Want(t, marks.seen("a"), 7, "the mark went back to %d with the generation")
	for i := range 10 * tokenGeneration {
		marks.saw(fmt.Sprint("x", i), 1)
	}
	redistest.WantMost(t, len(marks.young)+len(marks.old), 2*tokenGeneration, "%d names are remembered")
}
