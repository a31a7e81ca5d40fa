package holdfast

import "context"

// owner is an identity that may hold locks and re-enter them. Go has no thread
// identity, so an owner is neither a goroutine nor a handle: it is a value that the
// first lease creates and that contexts carry. Only its address matters.
type owner struct{ _ byte }

type ownerKey struct{}

// ownerFrom returns the owner that ctx carries, nil if it carries none.
func ownerFrom(ctx context.Context) *owner {
	o, _ := ctx.Value(ownerKey{}).(*owner)
	return o
}

// withOwner returns a copy of ctx that carries o.
func withOwner(ctx context.Context, o *owner) context.Context {
	return context.WithValue(ctx, ownerKey{}, o)
}

// WithoutOwner returns a copy of ctx that carries no owner: a Lock under it competes
// with the locks held under ctx instead of re-entering them. Use it where work fans
// out to goroutines that are to exclude each other.
func WithoutOwner(ctx context.Context) context.Context {
	if ownerFrom(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, ownerKey{}, (*owner)(nil))
}
