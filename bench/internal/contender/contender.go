// Package contender has the locks that are measured: an adapter for each library, and
// the best of those that people write by hand. Each is set up as well as its options allow;
// the comment at its open function says how and why.
package contender

import (
	"context"
	"fmt"
)

// Contender is a client of a lock library, reduced to what all of them can do.
type Contender interface {
	// Lock waits for the named lock until ctx is done.
	Lock(ctx context.Context, name string) (unlock func(context.Context) error, err error)
	Close()
}

// Pair locks and unlocks once.
func Pair(ctx context.Context, c Contender, name string) error {
	unlock, err := c.Lock(ctx, name)
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	if err := unlock(ctx); err != nil {
		return fmt.Errorf("unlock: %w", err)
	}
	return nil
}
