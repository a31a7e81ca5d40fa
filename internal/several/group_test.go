package several_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/seam"
	"github.com/holdfast-go/holdfast/internal/several"
)

// calls are those of a package whose users get facts as errors.
type calls struct {
	answers map[*engine.Lease]error // of Extend
}

func (calls) Unlock(context.Context, *engine.Lease, time.Time) func() error {
	return func() error { return nil }
}

func (c calls) Extend(_ context.Context, p *engine.Lease, _ time.Duration) error { return c.answers[p] }
func (calls) Is(err error, fact engine.Fact) bool                                { return errors.Is(err, fact) }
func (calls) Lost(err error) (string, bool)                                      { return "", errors.Is(err, engine.LeaseLost) }

func (calls) Join(failures []several.Failure) error {
	var all []error
	for _, f := range failures {
		all = append(all, f.Err)
	}
	return errors.Join(all...)
}

// newGroup returns a lease of several locks that two parts are enough for, and three parts that have not joined.
func newGroup(t *testing.T, need int, c calls) (g *several.Group, parts []*engine.Lease) {
	t.Helper()
	m := locktest.ManagerOn(t, redistest.Start(t), holdfast.WithLease(time.Hour))
	for _, name := range []string{"a", "b", "c"} {
		parts = append(parts, (*engine.Lease)(locktest.MustLock(t, m.Mutex(name))))
	}
	whole := seam.Engine(m).NewLock(engine.RedlockKind, "whole", "", nil)
	return several.New(&whole, seam.Engine(m), need, c), parts
}

// What is said of all parts is not what has ended some of them, as long as the others are enough.
func TestGroup_EndOfAPartIsNotThatOfTheLease(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		for _, end := range []error{engine.LeaseLost, engine.MaxHoldOver, engine.LeaseClosed} {
			for need, ended := range map[int]bool{2: false, 3: true} {
				c := calls{make(map[*engine.Lease]error)}
				g, parts := newGroup(t, need, c)
				for _, p := range parts {
					g.Join(p)
				}
				c.answers[parts[0]], c.answers[parts[1]] = end, engine.Unavailable
				err := g.Extend(t.Context(), time.Minute)
				if !errors.Is(err, engine.Unavailable) || errors.Is(err, end) != ended {
					t.Errorf("%v of one, %d needed: %v", end, need, err)
				}
				g.Dissolve()
			}
		}
	})
}

// A part that has ended when it joins, before it knows what it is part of, ends the whole.
func TestGroup_PartThatHasEndedEndsIt(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		m := locktest.ManagerOn(t, redistest.Start(t), holdfast.WithLease(time.Second), holdfast.WithMaxHold(time.Second))
		p := locktest.MustLock(t, m.Mutex("a"))
		<-p.Done()
		whole := seam.Engine(m).NewLock(engine.RedlockKind, "whole", "", nil)
		g := several.New(&whole, seam.Engine(m), 1, calls{})
		g.Join((*engine.Lease)(p))
		if err := g.Lease().Err(); err != p.Err() || !errors.Is(err, holdfast.ErrMaxHold) || g.Valid() {
			t.Errorf("%v, valid %v", err, g.Valid())
		}
		g.Dissolve()
	})
}
