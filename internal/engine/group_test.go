package engine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/seam"
)

// wholeOf makes a lease of several locks of leases that were granted, which so many of them are enough for.
func wholeOf(m *holdfast.Manager, need int, parts ...*holdfast.Lease) *holdfast.Lease {
	all := make([]*engine.Lease, len(parts))
	for i, p := range parts {
		all[i] = (*engine.Lease)(p)
	}
	return (*holdfast.Lease)(seam.Engine(m).WholeOf(need, all...))
}

// What is said of all parts is not what has ended some of them, as long as the others are enough.
func TestGroup_EndOfAPartIsNotThatOfTheLease(t *testing.T) {
	for end, by := range map[error]func(*testing.T, *redistest.Server, *holdfast.Manager){
		holdfast.ErrLeaseLost: func(t *testing.T, s *redistest.Server, _ *holdfast.Manager) { s.Admin().Del(t.Context(), "a") },
		holdfast.ErrClosed: func(t *testing.T, _ *redistest.Server, m *holdfast.Manager) {
			redistest.Check(t, m.Close(t.Context()))
		},
	} {
		for need, ended := range map[int]bool{2: false, 3: true} {
			t.Run(fmt.Sprint(end, need), redistest.Worlds(func(t *testing.T) {
				var servers []*redistest.Server
				var ms []*holdfast.Manager
				var parts []*holdfast.Lease
				for i := range 3 {
					servers = append(servers, redistest.Start(t))
					ms = append(ms, locktest.ManagerOn(t, servers[i], holdfast.WithFixedLease(time.Hour)))
					parts = append(parts, locktest.MustLock(t, ms[i].Mutex("a")))
				}
				l := wholeOf(ms[0], need, parts...)
				by(t, servers[0], ms[0])
				servers[1].Kill()
				err := l.Extend(t.Context(), 2*time.Hour)
				if errors.Is(err, end) != ended || errors.Is(err, holdfast.ErrUnavailable) == ended {
					t.Errorf("%v of one, %d needed: %v", end, need, err)
				}
				if err := l.Err(); errors.Is(err, end) != ended {
					t.Errorf("%v of one, %d needed: the lease has ended with %v", end, need, err)
				}
			}))
		}
	}
}

// A part that has ended when it joins, before it knows what it is part of, ends the whole.
func TestGroup_PartThatHasEndedEndsIt(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		m := locktest.ManagerOn(t, redistest.Start(t), holdfast.WithLease(time.Second), holdfast.WithMaxHold(time.Second))
		p := locktest.MustLock(t, m.Mutex("a"))
		<-p.Done()
		l := wholeOf(m, 1, p)
		if err := l.Err(); err != p.Err() || !errors.Is(err, holdfast.ErrMaxHold) || l.Valid() {
			t.Errorf("%v, valid %v", err, l.Valid())
		}
	})
}
