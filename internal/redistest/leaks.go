package redistest

import (
	"time"

	"go.uber.org/goleak"
)

// leakPatience bounds the wait for goroutines that end by themselves. go-redis dials a dead server once a second, and sees
// only then that its client is closed.
const leakPatience = 10 * time.Second

// Leaked returns an error that lists the goroutines that are left behind. It waits for those that are about to end.
func Leaked(options ...goleak.Option) error {
	deadline := time.Now().Add(leakPatience)
	for {
		// Find looks for half a second.
		if err := goleak.Find(options...); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
