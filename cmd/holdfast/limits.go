package main

import (
	"cmp"
	"time"
)

// limit makes --timeout what a client waits for Redis, where its URL has no times of its own. go-redis would wait for 5 s,
// five times over, and take no notice of a context's deadline.
func limit(timeout time.Duration, dial, read, write, pool *time.Duration, dials, retries *int, deadlines *bool) {
	for _, d := range []*time.Duration{dial, read, write, pool} {
		*d = cmp.Or(*d, timeout)
	}
	*dials, *retries, *deadlines = cmp.Or(*dials, 1), cmp.Or(*retries, 1), true
}
