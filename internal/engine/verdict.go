package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// What the root package says of locks, it says in the words of package lock.
type (
	Kind    = lock.Kind
	Fact    = lock.Fact
	Verdict = lock.Verdict
)

const (
	MutexKind   = lock.MutexKind
	FairKind    = lock.FairKind
	WriteKind   = lock.WriteKind
	ReadKind    = lock.ReadKind
	MultiKind   = lock.MultiKind
	RedlockKind = lock.RedlockKind

	NotAcquired   = lock.NotAcquired
	LeaseLost     = lock.LeaseLost
	MaxHoldOver   = lock.MaxHoldOver
	Released      = lock.Released
	LeaseClosed   = lock.LeaseClosed
	NotHeld       = lock.NotHeld
	Closed        = lock.Closed
	WouldDeadlock = lock.WouldDeadlock
	WrongKind     = lock.WrongKind
	Unavailable   = lock.Unavailable
	Tokenless     = lock.Tokenless
	Upgrade       = lock.Upgrade
	BothKinds     = lock.BothKinds
	TooLate       = lock.TooLate
	Unreleased    = lock.Unreleased
	Downgrading   = lock.Downgrading
	HeldHere      = lock.HeldHere

	AsideFor = lock.AsideFor
	AwayFor  = lock.AwayFor
	Silence  = lock.Silence

	Readmission = lock.Readmission
)

// endName names the end of a lease for metrics.
func endName(f Fact) string {
	switch f {
	case Released:
		return "released"
	case MaxHoldOver:
		return "max_hold"
	case LeaseClosed:
		return "closed"
	}
	return "lost"
}

// ContextCauses are the errors that a caller may look for when ctx has ended: why
// it was cancelled, and context.Canceled or DeadlineExceeded if that is not the
// same.
func ContextCauses(ctx context.Context) []error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || cause == err {
		return []error{err}
	}
	return []error{cause, err}
}

// Terms are what the options of a lock add up to.
type Terms = protocol.Terms

// NewTerms are those of a lock that is renewed, and has no other options.
func NewTerms(ttl time.Duration) (c Terms) {
	c.TTL = ttl
	return c
}
