//go:build unix

package supervisor

import (
	"fmt"
	"strings"
	"testing"
	"time"
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
		readOrders(strings.NewReader(fmt.Sprintf("lease 1 %d %d false\n", left, before.Add(left-step).UnixNano())), orders)
		after := time.Now()
		const reading = time.Millisecond // a time's wall clock and its monotonic clock are read one after the other
		if o := <-orders; o.deadline.Before(before.Add(want-reading)) || o.deadline.After(after.Add(want+reading)) {
			t.Errorf("set by %v: %v are left, want %v", step, o.deadline.Sub(before), want)
		}
	}
}
