// Package retry has the pauses between repeated requests.
package retry

import (
	"math/rand/v2"
	"time"
)

// Seed returns what the chance of new pauses is drawn from, for any goroutine. The simulation changes it, before the first pauses.
var Seed = rand.Uint64

// Pauses are pauses that grow. A copy goes its own way.
type Pauses struct {
	RandomizationFactor float64 // how much of each is taken off or added at most
	next                time.Duration
	chance              rand.PCG
}

const (
	first   = 10 * time.Millisecond
	longest = time.Second
)

// New returns pauses that double from 10 ms to a second, without end; up to half of each is taken off or added.
func New() *Pauses {
	p := &Pauses{RandomizationFactor: 0.5, next: first}
	p.chance.Seed(Seed(), 0)
	return p
}

// NextBackOff returns the next pause.
func (p *Pauses) NextBackOff() time.Duration {
	d := p.next
	p.next = min(2*d, longest)
	off := time.Duration(p.RandomizationFactor * float64(d))
	return d - off + time.Duration(p.chance.Uint64()%uint64(2*off+1))
}

// Reset makes the next pause as short as the first.
func (p *Pauses) Reset() { p.next = first }
