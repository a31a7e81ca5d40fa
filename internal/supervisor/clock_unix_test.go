//go:build unix

package supervisor

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// The host's clock can be set while the guard reads a deadline, which comes as the time that is left and as a time of the
// wall clock. A clock that is set back prolongs nothing. One that is set forward cannot be told from a host that has slept:
// the command is ended.
func TestGuard_ClockIsSet(t *testing.T) {
	const left = time.Minute
	for step, want := range map[time.Duration]time.Duration{0: left, -time.Hour: left, 20 * time.Second: left - 20*time.Second, time.Hour: left - time.Hour} {
		orders := make(chan order, 1)
		before := time.Now()
		// The supervisor wrote the line by a clock that is the step behind this one.
		readOrders(strings.NewReader(fmt.Sprintf("lease %d %d false\n", left, before.Add(left-step).UnixNano())), orders)
		after := time.Now()
		const reading = time.Millisecond // a time's wall clock and its monotonic clock are read one after the other
		if o := <-orders; o.deadline.Before(before.Add(want-reading)) || o.deadline.After(after.Add(want+reading)) {
			t.Errorf("set by %v: %v are left, want %v", step, o.deadline.Sub(before), want)
		}
	}
}

// set returns t as a process reads it whose wall clock has been set by step since. The monotonic clock goes on.
func set(t time.Time, step time.Duration) time.Time {
	// A time.Time begins with the wall clock's reading, seconds above 30 bits of nanoseconds.
	*(*uint64)(unsafe.Pointer(&t)) += uint64(step/time.Second) << 30
	return t
}

// What the supervisor does at each time since the beginning, for a lease that ends at 30 s and a grace time of 5 s, if the
// host's clock is set just before. It is the same table as without a step if the clock is set back.
func TestPlan_ClockIsSet(t *testing.T) {
	const s = time.Second
	type look struct {
		at   time.Duration
		want action
	}
	untouched := []look{{10 * s, nothing}, {24 * s, nothing}, {26 * s, term}, {29 * s, nothing}, {30 * s, kill}}
	for step, looks := range map[time.Duration][]look{
		0:               untouched,
		-10 * s:         untouched,
		-24 * time.Hour: untouched,
		10 * s:          {{10 * s, nothing}, {14 * s, nothing}, {16 * s, term}, {20 * s, kill}},
		time.Hour:       {{0, kill}},
	} {
		began := time.Now()
		p := plan{grace: 5 * s, loss: LossTerm}
		for _, l := range looks {
			now := set(began.Add(l.at), step)
			if d := now.Sub(began); d != l.at {
				t.Fatalf("the monotonic clock was set by %v", d-l.at)
			}
			if got := p.step(now, began.Add(30*s), nil); got != l.want {
				t.Errorf("set by %v: after %v: %v, want %v", step, l.at, got, l.want)
			}
		}
	}
}
