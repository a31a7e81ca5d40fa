// Package retry has the pauses between repeated requests.
package retry

import (
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Seed returns what the chance of new pauses is drawn from, for any goroutine. The simulation changes it, before the first pauses.
var Seed = rand.Uint64

// Pauses are pauses that grow.
type Pauses struct {
	RandomizationFactor float64                    // how much of each is taken off or added at most
	grows               backoff.ExponentialBackOff // a value: a copy of Pauses goes its own way
	chance              rand.PCG
}

// New returns pauses that grow from 10 ms to a second, without end; up to half of each is taken off or added.
func New() *Pauses {
	p := &Pauses{RandomizationFactor: 0.5, grows: *backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(10*time.Millisecond),
		backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(0), // NextBackOff draws it
		backoff.WithMaxInterval(time.Second),
		backoff.WithMaxElapsedTime(0),
	)}
	p.chance.Seed(Seed(), 0)
	return p
}

// NextBackOff returns the next pause.
func (p *Pauses) NextBackOff() time.Duration {
	d := p.grows.NextBackOff()
	off := time.Duration(p.RandomizationFactor * float64(d))
	return d - off + time.Duration(p.chance.Uint64()%uint64(2*off+1))
}

// Reset makes the next pause as short as the first.
func (p *Pauses) Reset() { p.grows.Reset() }
