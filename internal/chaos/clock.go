package chaos

import (
	"math"
	"time"
)

// never is the return of an operation that did not return.
const never = math.MaxInt64

// epoch ties Go's clock readings to the clock that all processes of the host share.
var epoch = func() (e struct {
	at     time.Time
	shared int64
}) {
	// The pair of readings that lie closest together.
	best := time.Duration(math.MaxInt64)
	for range 100 {
		before := time.Now()
		shared := sharedClock()
		after := time.Now()
		if d := after.Sub(before); d < best {
			best, e.at, e.shared = d, before, shared
		}
	}
	return e
}()

// at converts a reading with a monotonic part.
func at(t time.Time) int64 { return epoch.shared + int64(t.Sub(epoch.at)) }

// now is the current time.
func now() int64 { return at(time.Now()) }
