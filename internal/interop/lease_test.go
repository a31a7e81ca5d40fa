package interop

import (
	"context"
	"strconv"
	"time"
)

// Leases of these scenarios. A process renews a short one every 2 s, so it may stand still for
// nearly 4 s before it loses the lock. A machine may be slow by the slack; lease and slack are
// shorter than the poll interval, so that a waiter that only polls is still found out.
const (
	shortLease = 6 * time.Second
	slack      = 6 * time.Second
)

var shortFlags = []string{"--watchdog", strconv.FormatInt(shortLease.Milliseconds(), 10)}

// short is the fleet's process of the given side whose locks have a short TTL.
func (e *env) short(side string) *peer {
	if side == "go" {
		return e.shortGo()
	}
	return e.shortJava()
}

// ownShort starts a process with a short TTL for this scenario alone, which may stop or kill it.
func (e *env) ownShort(side string) *peer {
	e.Helper()
	if side == "go" {
		return e.startGo(e, shortFlags...)
	}
	return e.startJava(e, shortFlags...)
}

// A hold without a lease is renewed for as long as it lasts, while waiters of the other
// side keep asking for it.
func renewal(e *env) {
	for _, d := range e.directions() {
		holder := e.short(d.from.side)
		began := e.lockAgainst(holder, 1, -1).ended
		for time.Since(began) < 2*shortLease {
			waiter := d.to.start(e, e.thread(2), "tryLock", e.kind.name, e.key, 400, -1)
			if a := waiter.want("false"); a.ended.Sub(a.began) < 300*time.Millisecond {
				e.Errorf("%v: gave up after %v", d, a.ended.Sub(a.began))
			}
			ttl := d.to.start(e, e.thread(3), "remainTimeToLive", e.kind.name, e.key).number()
			if most := shortLease.Milliseconds(); ttl <= 0 || ttl > most {
				e.Errorf("%v: TTL of %d ms while renewed to %v", d, ttl, shortLease)
			}
		}
		e.unlockAgainst(holder, 1)
		e.free()
	}
}

// A hold with a lease is not renewed, also not by the watchdog of the other side or of
// the same process, which keep other locks. The waiter enters when it ends: neither before
// nor long after.
func expiry(e *env) {
	for _, d := range e.directions() {
		holder := e.short(d.from.side)
		other := *e
		other.key += ":other"
		other.lockAgainst(holder, 2, -1)

		locked := e.lockAgainst(holder, 1, int(shortLease.Milliseconds()))
		waiter := d.to.start(e, e.thread(3), "lock", e.kind.name, e.key, -1).want("ok")
		held := waiter.ended.Sub(locked.began)
		e.Logf("%v: a lease of %v ended after %v", d, shortLease, held.Round(time.Millisecond))
		if held < shortLease || held > shortLease+slack {
			e.Errorf("%v: a lease of %v ended after %v", d, shortLease, held)
		}
		e.unlock(d.to, 3)
		other.unlockAgainst(holder, 2) // was renewed meanwhile
		e.free()
	}
}

// renewed waits until the hold has been renewed.
func (e *env) renewed() {
	e.Helper()
	left := func() time.Duration { return e.admin.PTTL(context.Background(), e.key).Val() }
	before := left()
	e.eventually("it is renewed", patience, func() bool {
		now := left()
		defer func() { before = now }()
		return now > before
	})
}

// The lock of a process that was killed is free when its TTL has passed, although the
// other side runs a watchdog and has had the same lock before. The waiter's idea of that TTL
// is older than the last renewal.
func killedHolder(e *env) {
	for _, d := range e.directions() {
		if d.to.side == "java" && e.kind.queue && e.line == old {
			continue // may sleep forever: see fairWaiterBehindCrash
		}
		holder, waiter := e.ownShort(d.from.side), e.short(d.to.side)
		e.lock(waiter, 2, -1)
		e.unlock(waiter, 2)
		e.lockAgainst(holder, 1, -1)
		waiting := e.waiter(waiter, 2)
		e.renewed()
		holder.Kill()
		killed := time.Now()
		freed := waiting.want("ok").ended.Sub(killed)
		e.Logf("%v: entered %v after the holder was killed", d, freed.Round(time.Millisecond))
		if freed > shortLease+slack {
			e.Errorf("%v: entered %v after the holder was killed, its TTL being %v", d, freed, shortLease)
		}
		e.unlock(waiter, 2)
		e.free()
	}
}

// A process that was stopped for longer than its TTL does no harm when it goes on: its
// watchdog leaves the next holder's lease as it is, and its unlock fails.
func pausedHolder(e *env) {
	const lease = 20_000 // longer than the watchdog would make it, and than a machine may stand still
	for _, d := range e.directions() {
		holder := e.ownShort(d.from.side)
		e.lockAgainst(holder, 1, -1)
		holder.Pause()
		next := d.to.start(e, e.thread(2), "lock", e.kind.name, e.key, lease).want("ok")
		holder.Resume()
		unlock := holder.start(e, e.thread(1), "unlock", e.kind.against(), e.key)
		unlock.wantFailure(map[string]string{"go": "lost", "java": "IllegalMonitorStateException"}[holder.side])

		// Two periods of the watchdog, in which nothing may be renewed or shortened: the watchdog
		// would leave the lease with no more than the short one.
		time.Sleep(2 * shortLease / 3)
		asked := d.to.start(e, e.thread(3), "remainTimeToLive", e.kind.name, e.key)
		ttl := time.Duration(asked.number()) * time.Millisecond
		ends := asked.answer().began.Add(ttl).Sub(next.ended) // or a little later
		if want := lease * time.Millisecond; ends > want+50*time.Millisecond || ends < want-slack {
			e.Errorf("%v: the next holder's lease of %v ends after %v", d, want, ends)
		}
		e.unlock(d.to, 2)
		e.free()
	}
}
