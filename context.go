package holdfast

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/engine"
)

// Context returns a context derived from parent that carries the lease: a Lock of the same lock
// under it re-enters while the lease is held. Other locks are not affected.
//
// The context is cancelled when the lease ends, and [context.Cause] then returns [Lease.Err]. It is
// also cancelled when parent is. Do not pass the context that bounded the wait for the lock: its
// deadline would bound the work too.
//
// Context panics with an *[OptionError] if parent is nil.
//
// A context that is not used any more is garbage-collected. Parents that share a Done channel, such
// as a context and those that only add values to it, count as one: the lease keeps the first of
// them, a few hundred bytes, until that parent or the lease ends.
func (l *Lease) Context(parent context.Context) context.Context {
	if parent == nil {
		panic(missing("Lease.Context", "parent"))
	}
	return l.inner().Context(parent)
}

// WithoutOwner returns a copy of ctx that carries no lease. A Lock under it competes with the locks that
// are held under ctx, instead of re-entering them.
//
// Use it if the work under a lock fans out to goroutines that must exclude each other on that same
// lock. On all other locks they exclude each other without it. WithoutOwner panics with an
// *[OptionError] if ctx is nil.
func WithoutOwner(ctx context.Context) context.Context {
	if ctx == nil {
		panic(missing("WithoutOwner", "context"))
	}
	return engine.WithoutOwner(ctx)
}
