package holdfast

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/engine"
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

// A part that comes when the others have lapsed does not make up for them, also if nobody has been told yet: in
// between, others may have had the lock.
func TestGroup_PartAfterALapseIsGivenBack(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m, err := New(srv.Client(t), WithLease(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(t.Context())
	var parts []*Lease
	for _, name := range []string{"a", "b", "c"} {
		part, err := m.Mutex(name).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part)
	}
	whole := newGroupLease(&handle{m: m, lock: m.engine.NewLock(engine.RedlockKind, "whole", "", nil)}, 2)
	whole.join(parts[0])
	whole.join(parts[1])
	if !whole.Valid() {
		t.Fatal("not valid")
	}
	parts[1].inner().Inside().SetEnd(time.Now().Add(-time.Second))
	whole.join(parts[2])
	if parts[2].Err() != ErrReleased || whole.Valid() {
		t.Errorf("the late part: %v; the lease is valid: %v", parts[2].Err(), whole.Valid())
	}
}
