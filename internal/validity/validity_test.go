package validity

import (
	"math"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

func TestMargin(t *testing.T) {
	for _, tc := range []struct{ ttl, want time.Duration }{
		{10 * time.Millisecond, 5 * time.Millisecond}, // never more than half
		{50 * time.Millisecond, 25 * time.Millisecond},
		{time.Second, 25 * time.Millisecond},
		{2 * time.Second, 40 * time.Millisecond}, // a fiftieth
		{30 * time.Second, 600 * time.Millisecond},
	} {
		if got := Margin(tc.ttl); got != tc.want {
			t.Errorf("Margin(%v) = %v, want %v", tc.ttl, got, tc.want)
		}
	}
}

func TestPatience_IsAQuarterWithinBounds(t *testing.T) {
	for _, tc := range []struct{ ttl, want time.Duration }{
		{MinTTL, 100 * time.Millisecond},
		{1200 * time.Millisecond, 300 * time.Millisecond},
		{30 * time.Second, time.Second},
	} {
		for _, trip := range []time.Duration{0, time.Millisecond} {
			if got := Patience(tc.ttl, trip); got != tc.want {
				t.Errorf("Patience(%v, %v) = %v, want %v", tc.ttl, trip, got, tc.want)
			}
		}
	}
}

// Where Redis is far away, twelve round trips count, but no more than a quarter of the TTL; or two, up to half of it.
func TestPatience_GrowsWithTheRoundTrip(t *testing.T) {
	const far = 1250 * time.Millisecond
	for _, tc := range []struct{ ttl, want time.Duration }{
		{time.Minute, 15 * time.Second},
		{30 * time.Second, 7500 * time.Millisecond},
		{6 * time.Second, 2500 * time.Millisecond},
		{4 * time.Second, 2 * time.Second},
		{100 * time.Millisecond, 100 * time.Millisecond},
	} {
		if got := Patience(tc.ttl, far); got != tc.want {
			t.Errorf("Patience(%v, %v) = %v, want %v", tc.ttl, far, got, tc.want)
		}
	}
	for trip, want := range map[time.Duration]time.Duration{0: time.Second, 500 * time.Millisecond: 6 * time.Second, time.Minute: 10 * time.Second} {
		if got := AskPatience(trip); got != want {
			t.Errorf("AskPatience(%v) = %v, want %v", trip, got, want)
		}
	}
}

// Whatever the TTL: renewal comes before the deadline, the deadline before expiry, and
// a failed renewal can be tried again at least twice.
func TestWindow_IsOrdered(t *testing.T) {
	sent := time.Now()
	for ttl := MinTTL; ttl <= MaxTTL; ttl = ttl*3/2 + 1 {
		if deadline := Deadline(sent, ttl); !deadline.After(sent) || !deadline.Before(sent.Add(ttl)) {
			t.Fatalf("ttl %v: deadline +%v", ttl, deadline.Sub(sent))
		}
		if got := time.Duration(Milliseconds(ttl)) * time.Millisecond; got < ttl {
			t.Fatalf("ttl %v is cut short to %v on the wire", ttl, got)
		}
	}
}

func TestTTL_IsTheInverseOfDeadline(t *testing.T) {
	sent := time.Now()
	for d := time.Millisecond; d <= MaxTTL; d += d/4 + 1 {
		if trusted := Deadline(sent, TTL(d)).Sub(sent); trusted < d || trusted > d+1 {
			t.Errorf("of TTL %v for %v, %v are trusted", TTL(d), d, trusted)
		}
	}
}

func TestValid_NeedsBothClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		deadline := Deadline(start, time.Second)
		time.Sleep(500 * time.Millisecond)
		now := time.Now()
		if !Valid(now, deadline) {
			t.Error("invalid half-way")
		}
		if Valid(time.Now().Add(500*time.Millisecond), deadline) {
			t.Error("valid after its end")
		}
		// The host slept, or the wall clock was set forward: only the wall moved.
		if slept := deadline.Round(0).Add(-time.Hour); Valid(now, slept) {
			t.Error("valid although the wall clock is past the end")
		}
		// Both ends without monotonic reading: the wall clock alone decides.
		if Valid(now.Round(0), deadline.Round(0).Add(-time.Second)) {
			t.Error("valid by the wall clock although past")
		}
	})
}

func TestGrant(t *testing.T) {
	const claim = 2 * time.Second
	read := time.Now() // the server's clock showed 1,000,000 then or later
	for _, tc := range []struct {
		name    string
		granted int64         // by the server's clock
		heard   time.Duration // after the reading, by the process's clock
		since   time.Duration // likewise
		trusted bool
	}{
		{"at once", 1_000_500, 501 * time.Millisecond, 499 * time.Millisecond, true},
		{"in the millisecond of the reading", 1_000_000, 0, -time.Millisecond, true},
		{"a quarter of the claim late", 1_000_500, 999 * time.Millisecond, 499 * time.Millisecond, true},
		{"later than that", 1_000_500, 1000 * time.Millisecond, 499 * time.Millisecond, false},
		{"later than the claim", 1_000_500, 2600 * time.Millisecond, 499 * time.Millisecond, false},
		{"the process stood still meanwhile", 1_000_500, time.Hour, 499 * time.Millisecond, false},
		{"the server's clock was set forward", 1_005_000, 500 * time.Millisecond, 4999 * time.Millisecond, false},
		{"the server's clock was set back", 999_000, 500 * time.Millisecond, 0, false},
		{"a reading of a minute ago", 1_060_000, time.Minute, time.Minute - time.Millisecond, true},
		{"an older one: the clocks have drifted apart", 1_060_001, time.Minute + time.Millisecond, 0, false},
		{"no time at all", 1 << 62, time.Second, 0, false},
	} {
		since, trusted := Grant(read.Add(tc.heard), read, 1_000_000, tc.granted, claim)
		if trusted != tc.trusted {
			t.Errorf("%s: trusted %v", tc.name, trusted)
		}
		if got := since.Sub(read); tc.since != 0 && got != tc.since {
			t.Errorf("%s: since %v after the reading, want %v", tc.name, got, tc.since)
		}
	}
}

// Whatever the reading was worth and however long the message took: a right that is
// trusted is not counted from after it began, if the clocks ran alike.
func TestGrant_NeverStretchesTheClaim(t *testing.T) {
	start := time.Now()
	for _, round := range []time.Duration{0, 700 * time.Microsecond, 30 * time.Millisecond} { // of the reading
		for waited := time.Duration(0); waited < 3*time.Second; waited += 333 * time.Millisecond {
			for late := time.Duration(0); late < 3*time.Second; late += 77*time.Millisecond + 300*time.Microsecond {
				clock := start.Add(round).UnixMilli() // read at the end of the round trip at the latest
				granted := start.Add(round + waited)
				since, trusted := Grant(granted.Add(late), start, clock, granted.UnixMilli(), 2*time.Second)
				if trusted && since.After(granted) {
					t.Errorf("reading took %v, waited %v, message %v late: counted from %v after the grant",
						round, waited, late, since.Sub(granted))
				}
			}
		}
	}
}

// The wall clock of this process was set forward since the reading: by it a lease would have ended
// that began with the right, so the message is no grant.
func TestGrant_BehindAStepOfTheWallClock(t *testing.T) {
	read := time.Now()
	// A time.Time begins with its wall clock's reading, seconds above 30 bits of nanoseconds.
	*(*uint64)(unsafe.Pointer(&read)) -= 3600 << 30
	now := time.Now()
	if d := now.Round(0).Sub(read.Round(0)); now.Sub(read) > time.Minute || d < time.Hour || d > time.Hour+time.Minute {
		t.Fatalf("this is no step: %v by the one clock, %v by the other", now.Sub(read), d)
	}
	if _, trusted := Grant(now, read, 1_000_000, 1_000_001, 2*time.Second); trusted {
		t.Error("trusted")
	}
}

func TestDuration_DoesNotOverflow(t *testing.T) {
	const room = math.MaxInt64 / int64(time.Millisecond)
	for ms, want := range map[int64]time.Duration{
		-1: -time.Millisecond, 0: 0, 1500: 1500 * time.Millisecond,
		room: time.Duration(room) * time.Millisecond, room + 1: math.MaxInt64, math.MaxInt64: math.MaxInt64,
	} {
		if got := Duration(ms); got != want {
			t.Errorf("Duration(%d) = %v, want %v", ms, got, want)
		}
	}
}
