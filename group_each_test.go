package holdfast

import (
	"errors"
	"testing"
)

// What is said of all parts is not what has ended some of them, as long as the others are enough.
func TestGroup_EndOfAPartIsNotThatOfTheLease(t *testing.T) {
	parts := []*Lease{{}, {}, {}}
	for _, end := range []error{&LostError{"a", LostDeleted}, ErrMaxHold, ErrClosed} {
		for _, c := range []struct {
			need  int
			ended bool
		}{{2, false}, {3, true}} {
			answers := map[*Lease]error{parts[0]: end, parts[1]: newLockError(ErrUnavailable, "a", errSilent), parts[2]: nil}
			err := (&group{need: c.need}).each(parts, func(p *Lease) error { return answers[p] })
			if !errors.Is(err, ErrUnavailable) || errors.Is(err, end) != c.ended {
				t.Errorf("%v of one, %d needed: %v", end, c.need, err)
			}
		}
	}
}
