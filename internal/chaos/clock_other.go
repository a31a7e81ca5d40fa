//go:build !linux

package chaos

import "time"

// sharedClock is the wall clock: good while nobody sets it.
func sharedClock() int64 { return time.Now().UnixNano() }
