//go:build !linux

package chaos

import "time"

// sharedClock is the wall clock: good while it is not set.
func sharedClock() int64 { return time.Now().UnixNano() }
