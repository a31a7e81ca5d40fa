package validity

import (
	"testing"
	"testing/synctest"
	"time"
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
		if got := Patience(tc.ttl); got != tc.want {
			t.Errorf("Patience(%v) = %v, want %v", tc.ttl, got, tc.want)
		}
	}
}

// Whatever the TTL: renewal comes before the deadline, the deadline before expiry, and
// a failed renewal can be tried again at least twice.
func TestWindow_IsOrdered(t *testing.T) {
	sent := time.Now()
	for ttl := MinTTL; ttl <= MaxTTL; ttl = ttl*3/2 + 1 {
		renew, deadline, expiry := RenewAt(sent, ttl), Deadline(sent, ttl), sent.Add(ttl)
		if !renew.After(sent) || !renew.Before(deadline) || !deadline.Before(expiry) {
			t.Fatalf("ttl %v: renew +%v, deadline +%v", ttl, renew.Sub(sent), deadline.Sub(sent))
		}
		if ttl > 100*time.Millisecond && renew.Add(2*RetryAfter(ttl)).After(deadline) {
			t.Fatalf("ttl %v: no room for two retries of %v", ttl, RetryAfter(ttl))
		}
		if got := time.Duration(Milliseconds(ttl)) * time.Millisecond; got < ttl {
			t.Fatalf("ttl %v is cut short to %v on the wire", ttl, got)
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
