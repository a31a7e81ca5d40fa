package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// The error is that of the lock that could not be taken, wherever it stands among the others.
func TestMulti_NamesWhatCannotBeTaken(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m, other := managerOn(t, srv), managerOn(t, srv)
	names := []string{"a", "b", "c"}
	l := multi(t, m.Mutex("a"), m.FairMutex("b"), m.Mutex("c"))
	for _, name := range names {
		for why, c := range map[string]struct {
			obstruct func() (clear func())
			is       error
		}{
			"held": {func() func() {
				held := mustLock(t, other.Mutex(name))
				return func() { mustUnlock(t, held) }
			}, holdfast.ErrNotAcquired},
			"held without a TTL": {func() func() {
				srv.Admin().HSet(t.Context(), name, "somebody", 1)
				return func() { srv.Admin().Del(t.Context(), name) }
			}, holdfast.ErrNotAcquired},
			"a string": {func() func() {
				srv.Admin().Set(t.Context(), name, "no lock", 0)
				return func() { srv.Admin().Del(t.Context(), name) }
			}, holdfast.ErrWrongKind},
			"a read-write lock": {func() func() {
				held := mustLock(t, other.RWMutex(name))
				return func() { mustUnlock(t, held) }
			}, holdfast.ErrWrongKind},
			"tombstones of another kind": {func() func() {
				srv.Admin().Set(t.Context(), "holdfast_tombstones:{"+name+"}", "no tombstones", 0)
				return func() { srv.Admin().Del(t.Context(), "holdfast_tombstones:{"+name+"}") }
			}, holdfast.ErrWrongKind},
		} {
			clear := c.obstruct()
			tries := []func(context.Context) (*holdfast.Lease, error){l.TryLock}
			if c.is == holdfast.ErrWrongKind {
				tries = append(tries, l.Lock)
			}
			for _, try := range tries {
				_, err := try(t.Context())
				if want := fmt.Sprintf("%v: %q", c.is, name); err == nil || !strings.HasPrefix(err.Error(), want) {
					t.Errorf("%s is %s: %v, want %s", name, why, err, want)
				}
			}
			clear()
			if n := srv.Admin().Exists(t.Context(), names...).Val(); n != 0 {
				t.Fatalf("%s was %s: %d locks are left", name, why, n)
			}
		}
	}
	mustUnlock(t, mustLock(t, l))
}

// What its owner would wait for itself is said before it waits for others.
func TestMulti_WouldDeadlockBehindOthers(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		m, other := managerOn(t, srv), managerOn(t, srv)
		busy := mustLock(t, other.Mutex("a", holdfast.WithFencing()))
		for name, c := range map[string]struct{ has, wants holdfast.Locker }{
			"write side of what it reads": {m.RWMutex("b").RLocker(), m.RWMutex("b")},
			"the other kind":              {m.Mutex("b"), m.FairMutex("b")},
		} {
			own := mustLock(t, c.has)
			l := multi(t, m.Mutex("a", holdfast.WithFencing()), c.wants)
			for _, lock := range []func(context.Context) (*holdfast.Lease, error){l.Lock, l.TryLock} {
				failed := make(chan error, 1)
				go func() {
					_, err := lock(own.Context(t.Context()))
					failed <- err
				}()
				if err := soonest(t, failed); !errors.Is(err, holdfast.ErrWouldDeadlock) {
					t.Errorf("%s: %v", name, err)
				}
			}
			mustUnlock(t, own)
		}
		mustUnlock(t, busy)
	})
}
