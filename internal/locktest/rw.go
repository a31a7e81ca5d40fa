package locktest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// RW returns the scenario's read-write lock as m sees it.
func (e *Env) RW(m *holdfast.Manager, opts ...holdfast.LockOption) *holdfast.RWMutex {
	return m.RWMutex(e.Key, opts...)
}

// MustRLock takes the read side or fails.
func (e *Env) MustRLock(l *holdfast.RWMutex) *holdfast.Lease {
	e.Helper()
	return e.MustLock(l.RLocker())
}

// Soon receives from one of Locking's channels, or fails.
func (e *Env) Soon(what string, got <-chan *holdfast.Lease) *holdfast.Lease {
	e.Helper()
	l := redistest.Next(e, got, what+" does not get it")
	if l == nil {
		e.FailNow() // Locking has said why
	}
	return l
}

// InQueue begins to lock, and returns when n ids stand in the lock's queue.
func (e *Env) InQueue(n int64, l holdfast.Locker) <-chan *holdfast.Lease {
	e.Helper()
	got := e.Locking(l)
	e.Queued(n)
	return got
}

// Parking begins to lock, and returns when n callers wait at m.
func (e *Env) Parking(m *holdfast.Manager, n int, l holdfast.Locker) <-chan *holdfast.Lease {
	e.Helper()
	got := e.Locking(l)
	e.Parked(m, n)
	return got
}

// Passes unlocks; what waits gets the lock soon, and unlocks it as well.
func (e *Env) Passes(l *holdfast.Lease, what string, got <-chan *holdfast.Lease) {
	e.Helper()
	e.MustUnlock(l)
	e.MustUnlock(e.Soon(what, got))
}

// Busy fails unless a call that does not wait finds the lock taken.
func (e *Env) Busy(try func(context.Context) (*holdfast.Lease, error)) {
	e.Helper()
	got, err := answered(e, func() (*holdfast.Lease, error) { return try(bg) })
	if err == nil {
		_ = got.Unlock(bg)
		e.Error("got the lock, want ErrNotAcquired")
		return
	}
	e.WantErr(err, holdfast.ErrNotAcquired)
}

// Queued waits until n ids stand in the lock's queue.
func (e *Env) Queued(n int64) {
	e.Helper()
	e.Eventually(fmt.Sprintf("%d in the queue", n), func() bool {
		return e.srv.Admin().LLen(bg, e.queue()).Val() == n
	})
}

// Rights returns the keys that the rights of readers end with.
func (e *Env) Rights() []string {
	return slices.DeleteFunc(e.srv.Keys(), func(k string) bool { return !strings.Contains(k, ":rwlock_timeout:") })
}

// RWSection is code that many readers or one writer may run. What it guards is
// protected by nothing but the lock, so the race detector watches as well.
type RWSection struct {
	readers, writers atomic.Int32
	n                int
}

// Write runs it as a writer.
func (s *RWSection) Write(t testing.TB) {
	if w, r := s.writers.Add(1), s.readers.Load(); w != 1 || r != 0 {
		t.Errorf("%d writers and %d readers inside", w, r)
	}
	s.n++
	s.writers.Add(-1)
}

// Read runs it as a reader, calling inside meanwhile, which may be nil.
func (s *RWSection) Read(t testing.TB, inside func()) {
	s.readers.Add(1)
	n := s.n
	if inside != nil {
		inside()
	}
	if w := s.writers.Load(); w != 0 || s.n != n {
		t.Errorf("%d writers inside, %d writes while reading", w, s.n-n)
	}
	s.readers.Add(-1)
}
