package holdfast_test

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// The context of a Multi re-enters each of its locks and the whole. That of one lock re-enters that
// one only: callers who share it exclude each other on the others.
func TestReentry_OfSeveralLocks(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m := managerOn(t, srv)
	rw := m.RWMutex("c")
	parts := []holdfast.Locker{m.Mutex("a"), m.FairMutex("b"), rw}
	all := multi(t, parts...)
	whole := mustLock(t, all)
	ctx := whole.Context(t.Context())
	before := m.Stats().Commands
	for _, l := range append(parts, all, rw.RLocker(), multi(t, parts[2], parts[0])) {
		for _, try := range []func(context.Context) (*holdfast.Lease, error){l.Lock, l.TryLock} {
			again, err := try(ctx)
			if err != nil {
				t.Fatalf("%T: %v", l, err)
			}
			_, err = l.TryLock(holdfast.WithoutOwner(ctx))
			wantErr(t, err, holdfast.ErrNotAcquired, holdfast.ErrWouldDeadlock)
			if err := again.Unlock(ctx); err != nil {
				t.Errorf("%T: %v", l, err)
			}
		}
	}
	if n := m.Stats().Commands - before; n != 0 {
		t.Errorf("%d commands", n)
	}
	mustUnlock(t, whole)

	a := mustLock(t, parts[0])
	ctx = a.Context(t.Context())
	first, err := all.Lock(ctx) // re-enters a, and takes the others for itself
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []holdfast.Locker{all, parts[1], rw, rw.RLocker(), multi(t, parts[1], m.Mutex("z"))} {
		_, err := l.TryLock(ctx)
		wantErr(t, err, holdfast.ErrNotAcquired, holdfast.ErrWouldDeadlock)
	}
	mustUnlock(t, first)
	mustUnlock(t, a)
}

// A Redlock re-enters under the context of its lease, and asks no server for that. Under the context
// of a lock on one member it competes for the others; it never waits for itself.
func TestReentry_OfARedlock(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := servers(t, 3)
		c := all.candidate(t)
		lease := mustLock(t, c)
		ctx := lease.Context(t.Context())
		for _, try := range []func(context.Context) (*holdfast.Lease, error){c.Lock, c.TryLock} {
			again, err := try(ctx)
			if err != nil {
				t.Fatal(err)
			}
			inner, err := c.Lock(again.Context(ctx))
			if err != nil {
				t.Fatal(err)
			}
			mustUnlock(t, inner)
			mustUnlock(t, again)
			_, err = c.TryLock(holdfast.WithoutOwner(ctx))
			wantErr(t, err, holdfast.ErrNotAcquired, nil)
		}
		mustUnlock(t, lease)
	})
}

// With one member down, the majority that is held is enough to re-enter, at once; and the lease taken
// so follows the outer one when that has the member back.
func TestReentry_OfARedlockWithAMemberDown(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := servers(t, 3)
		c := all.candidate(t)
		all[2].Pause()
		lease := mustLock(t, c)
		again, err := c.Lock(lease.Context(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		all[2].Resume()
		redistest.Eventually(t, patience, "the member is held", func() bool { return all[2].Admin().Exists(t.Context(), vote).Val() == 1 })
		mustUnlock(t, lease)
		if !again.Valid() {
			t.Error("the inner lease ended with the outer one")
		}
		mustUnlock(t, again)
		redistest.Eventually(t, patience, "all members are free", func() bool {
			for _, s := range all {
				if s.Admin().Exists(t.Context(), vote).Val() != 0 {
					return false
				}
			}
			return true
		})
	})
}
