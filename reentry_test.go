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
