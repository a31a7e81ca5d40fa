package interop

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
)

// permitKind takes one permit of Redisson's RPermitExpirableSemaphore. It is no lock, so it has a scenario of its own.
var permitKind = kind{name: "permits", mode: holdfast.KindSemaphore, lock: func(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker {
	return m.Semaphore(name, 1, opts...).Locker(1) // how many there are is set in Redis
}}

// Both sides share the permits and their number, and each wakes the callers of the other that wait for permits.
func permits(lock *env) {
	e := *lock
	e.kind = permitKind
	set := func(p *peer, n int) answer {
		e.Helper()
		return p.start(e, e.thread(9), "set", e.kind.name, e.key, n).want("ok")
	}
	counts := func(available, held int) {
		e.Helper()
		for _, p := range []*peer{e.golang[1], e.java[1]} {
			p.start(e, e.thread(9), "counts", e.kind.name, e.key).want(fmt.Sprintf("%d %d", available, held))
		}
	}
	// woken has a waiter of one side woken by what the other does.
	woken := func(d direction, by func() answer) {
		e.Helper()
		waiting := e.waiter(d.to, 3)
		e.eventually("it listens", patience, func() bool { return e.subscribers(e.kind.channel(e.key)) > 0 })
		began := by().began
		if late := waiting.want("ok").ended.Sub(began); late > bounds.woken {
			e.Errorf("%v: woken after %v, by something else than the message", d, late)
		}
	}
	// ends has a waiter come in when the permit that was taken last has ended.
	ends := func(p *peer, from time.Time, waiting *call) {
		e.Helper()
		if after := waiting.want("ok").ended.Sub(from); after > shortLease+slack {
			e.Errorf("%s came in after %v, and a lease had %v", p.side, after, shortLease)
		}
	}
	set(e.java[0], 2)
	for _, d := range e.directions() {
		holder, other := d.from, d.to
		e.lock(holder, 1, -1)
		e.lock(holder, 2, -1)
		counts(0, 2)
		e.refused(other)
		if info := e.inspect(); info.Kind != e.kind.mode || info.Permits != 2 || len(info.Holders) != 2 || slices.ContainsFunc(info.Holders, func(h holdfast.Holder) bool {
			return h.Holdfast != (holder.side == "go") || h.Holdfast != (h.TTL > 0) // Redisson's are for good
		}) {
			e.Errorf("%v: Inspect says %+v", d, info)
		}
		woken(d, func() answer { return e.unlock(holder, 1) })
		counts(0, 2)
		e.unlock(other, 3)

		set(other, 1) // what is held stays so
		counts(0, 1)
		e.refused(other)
		woken(d, func() answer { return set(holder, 2) })
		set(holder, 0)
		counts(-2, 2)
		e.unlock(holder, 2)
		e.unlock(other, 3)
		counts(0, 0)
		e.refused(holder)
		set(other, 2)
		e.free()
	}

	java, killed := e.java[0], e.ownShort("go")
	began := e.lock(java, 1, int(shortLease.Milliseconds())).began
	e.lock(killed, 2, -1)
	waiting := e.waiter(e.golang[0], 3)
	ends(e.golang[0], began, waiting)
	waiting = e.waiter(java, 4)
	killed.Kill()
	ends(java, time.Now(), waiting)
	e.unlock(e.golang[0], 3)
	e.unlock(java, 4)
	counts(2, 0)
}
