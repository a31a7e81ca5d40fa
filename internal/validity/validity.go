// Package validity holds the arithmetic of lease windows: until when a hold may be
// trusted, and how long one request for it may take.
//
// It is pure. Every function takes the times it needs and none reads a clock, so
// each rule is a table in the tests.
//
//	sent                                                          deadline   expiry
//	 |                                                                |-margin-|
//	 |-------------------------------- TTL ------------------------------------|
//
// sent is read BEFORE the request that set the TTL is handed to the network: the
// server cannot have started the TTL earlier, so a slow round trip shortens our
// trust and never stretches it.
package validity

import (
	"math"
	"time"
)

// MinTTL is the shortest lease that can be asked for. Redis counts whole
// milliseconds, and below a few of them nothing is left of a window after the
// margin.
const MinTTL = 10 * time.Millisecond

// MaxTTL is the longest: a hundred years. A Duration ends at 292 years, and sums of
// a time and a lease must not come near it.
const MaxTTL = 100 * 365 * 24 * time.Hour

const (
	minMargin   = 25 * time.Millisecond
	minPatience = 100 * time.Millisecond
	maxPatience = time.Second

	patientTrips   = 12
	leastTrips     = 2
	maxAskPatience = 10 * time.Second
)

// Margin is how long before the server's expiry a hold stops being trusted: the
// larger of 25 ms and a fiftieth of the TTL, for clocks that run at different
// rates and timers that fire late; never more than half of a short TTL.
func Margin(ttl time.Duration) time.Duration {
	return min(max(minMargin, ttl/50), ttl/2)
}

// Deadline is the end of the window that a confirmed request sent at sent opened.
func Deadline(sent time.Time, ttl time.Duration) time.Time {
	return sent.Add(ttl - Margin(ttl))
}

// TTL is the inverse of Deadline: the least TTL of which d is trusted.
func TTL(d time.Duration) time.Duration {
	return d + min(max(minMargin, (d+48)/49), d)
}

// Patience is how long one request for a lock of this TTL may stay unanswered
// before it counts as lost: a quarter of the TTL, but at most a second and, so
// that a scheduling hiccup is not taken for an outage, at least 100 ms. Where Redis is
// far away it is twelve round trips, so that the request can be repeated over a new connection, and
// still at most a quarter of the TTL; or two, an answer and time for it to be late, if at most half
// of the TTL: later there is little left of the window. A round trip of 0 is unknown.
func Patience(ttl, roundTrip time.Duration) time.Duration {
	near := min(max(ttl/4, minPatience), maxPatience)
	return max(near, min(patientTrips*roundTrip, ttl/4), min(leastTrips*roundTrip, ttl/2))
}

// AskPatience is Patience for a request that is not for a TTL: a second, or twelve round trips, but at most ten
// seconds.
func AskPatience(roundTrip time.Duration) time.Duration {
	return max(maxPatience, min(patientTrips*roundTrip, maxAskPatience))
}

// Valid reports whether now is before deadline on both clocks. Go's monotonic
// clock stands still while the host sleeps (golang/go#24595) and the wall clock
// can be set back, so a window is open only while neither has passed its end.
func Valid(now, deadline time.Time) bool {
	return now.Before(deadline) && now.Round(0).Before(deadline.Round(0))
}

// maxReading is how old a reading of the server's clock may be: clocks that differ by
// a few hundred millionths drift apart by less than the least margin in that time.
const maxReading = time.Minute

// Grant tells since when a right runs that a message says the server gave for claim
// when its clock showed granted milliseconds, and whether the message can be trusted
// at now without asking. A reading of that clock, which showed clock, was not taken
// before before.
//
// If the two clocks have run alike since the reading, the right began no earlier than
// since. A since in the future shows that the server's clock was set; one long ago, that
// the message was late, that this process stood still, or that its wall clock was set, by which
// the lease would have ended.
func Grant(now, before time.Time, clock, granted int64, claim time.Duration) (since time.Time, trusted bool) {
	ran := granted - clock
	if ran < 0 || ran > maxReading.Milliseconds() {
		return time.Time{}, false
	}
	since = before.Add(time.Duration(ran-1) * time.Millisecond) // readings are cut to milliseconds
	age, wall := now.Sub(since), now.Round(0).Sub(since.Round(0))
	return since, age >= 0 && max(age, wall) <= claim/4
}

// Milliseconds converts a TTL to what the wire carries, rounded up: a TTL that is
// cut short on the server could end before the window computed from it.
func Milliseconds(ttl time.Duration) int64 {
	return int64((ttl + time.Millisecond - 1) / time.Millisecond)
}

// Duration converts what Redis says in milliseconds, of a key that any client can have made: more than a
// Duration has room for is the longest one.
func Duration(ms int64) time.Duration {
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}
