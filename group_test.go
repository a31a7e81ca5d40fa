package holdfast

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// What is said of all parts is not what has ended some of them, as long as the others are enough.
func TestGroup_EndOfAPartIsNotThatOfTheLease(t *testing.T) {
	t.Parallel()
	parts := []*Lease{{}, {}, {}}
	for _, end := range []error{&LostError{"a", LostDeleted}, ErrMaxHold, ErrClosed} {
		for _, c := range []struct {
			need  int
			ended bool
		}{{2, false}, {3, true}} {
			answers := map[*Lease]error{parts[0]: end, parts[1]: newLockError(ErrUnavailable, "a", command.ErrSilent), parts[2]: nil}
			err := (&group{need: c.need}).each(parts, func(p *Lease) error { return answers[p] })
			if !errors.Is(err, ErrUnavailable) || errors.Is(err, end) != c.ended {
				t.Errorf("%v of one, %d needed: %v", end, c.need, err)
			}
		}
	}
}

// A part that has ended when it joins, before it knows what it is part of, ends the whole.
func TestExpire_OfAPartThatJoins(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		m, err := New(redistest.Start(t).Client(t), WithLease(time.Second), WithMaxHold(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close(context.Background())
		l := m.Mutex("a")
		p, err := l.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		<-p.Done()
		whole := newGroupLease(&l.handle, 1)
		whole.join(p)
		if err := whole.Err(); err != ErrMaxHold || whole.Valid() {
			t.Errorf("%v, valid %v", err, whole.Valid())
		}
		whole.dissolve()
	})
}
