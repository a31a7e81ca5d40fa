// Package retry has the pauses between repeated requests.
package retry

import (
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Pauses are pauses that grow.
type Pauses = backoff.ExponentialBackOff

// New returns pauses that grow from 10 ms to a second, without end; up to half of each is taken off or added.
func New() *Pauses {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(10*time.Millisecond),
		backoff.WithMultiplier(2),
		backoff.WithMaxInterval(time.Second),
		backoff.WithMaxElapsedTime(0),
	)
}
