package interop

import (
	"slices"
	"time"
)

// A waiter of one side is woken by the release of the other's, not by its own poll.
func wakeUp(e *env) {
	const rounds = 100
	for _, d := range e.directions() {
		var waits []time.Duration
		for range rounds {
			e.lockAgainst(d.from, 1, -1)
			waiter := e.waiter(d.to, 2)
			released := e.unlockAgainst(d.from, 1)
			granted := waiter.want("ok")
			waits = append(waits, granted.ended.Sub(released.began))
			e.unlock(d.to, 2)
			e.eventually("nobody listens", patience, func() bool {
				return d.to.side == "go" || e.subscribers(e.kind.channel(e.key)) == 0
			})
		}
		slices.Sort(waits)
		p50, p99, most := waits[rounds/2], waits[rounds*99/100], waits[rounds-1]
		e.Logf("%v: p50 %v, p99 %v, longest %v", d, p50.Round(time.Microsecond), p99.Round(time.Microsecond), most.Round(time.Microsecond))
		if most > bounds.woken {
			e.Errorf("%v: woken by something else than the message", d)
		}
	}
}
