// Package contender has the locks that are measured: an adapter for each library, and
// the best of those that people write by hand. Each is set up as well as its options allow;
// the comment at its open function says how and why.
package contender

import (
	"context"
	"errors"
	"fmt"
)

// Contender is a client of a lock library, reduced to what all of them can do.
type Contender interface {
	// Lock waits for the named lock until ctx is done.
	Lock(ctx context.Context, name string) (unlock func(context.Context) error, err error)
	Close()
}

// Trier is a Contender whose callers need not wait.
type Trier interface {
	Contender
	// Refused makes one attempt to take the named lock, which is in use. It returns an error if the attempt is not refused.
	Refused(ctx context.Context, name string) error
}

var errNotRefused = errors.New("a lock that is in use was granted")

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
