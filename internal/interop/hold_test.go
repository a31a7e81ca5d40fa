package interop

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// An owner that takes the lock twice must give it back twice. Redisson counts in Redis,
// we in the process.
func reentry(e *env) {
	for _, d := range e.directions() {
		holder, other := d.from, d.to
		e.lock(holder, 1, -1)
		e.lock(holder, 1, -1)
		holds := map[string]int{"java": 2, "go": 1}[holder.side]
		if got := e.inspect().Holders; len(got) != 1 || got[0].Holds != holds {
			e.Errorf("%v: holders %+v, want one with %d holds", d, got, holds)
		}
		e.unlock(holder, 1)
		e.refusedAgainst(other)
		e.unlock(holder, 1)
		e.free()
		once := holder.start(e, e.thread(1), "unlock", e.kind.name, e.key)
		rw := e.kind.name == "read" || e.kind.name == "write"
		if holder.side == "java" && (e.kind.queue || rw && e.line == old) {
			once.want("ok") // Redisson lets any client unlock a fair lock that is free; until 3.44.0 a read-write lock as well
		} else {
			once.wantFailure("not")
		}
	}
}

// Each side sees the other's hold: that it is there, for how long and whose it is.
func observe(e *env) {
	const lease = 20_000
	for _, d := range e.directions() {
		holder, other := d.from, d.to
		ask := func(verb string) *call { return other.start(e, e.thread(2), verb, e.kind.name, e.key) }
		ask("isLocked").want("false")
		ask("remainTimeToLive").want("-2")
		e.lock(holder, 1, lease)
		ask("isLocked").want("true")
		if ttl := ask("remainTimeToLive").number(); ttl > lease || ttl < lease/2 {
			e.Errorf("%v: TTL %d ms of a lease of %d ms", d, ttl, lease)
		}
		info := e.inspect()
		if info.Kind != e.kind.mode || !info.Held || len(info.Holders) != 1 || info.Holders[0].Holdfast != (holder.side == "go") {
			e.Errorf("%v: Inspect says %+v", d, info)
		}
		e.unlock(holder, 1)
		ask("isLocked").want("false")
	}
}

// inspect asks a process of Holdfast.
func (e *env) inspect() (info holdfast.Info) {
	e.Helper()
	a := e.golang[1].start(e, e.thread(1003), "inspect", e.kind.name, e.key).answer()
	if err := json.Unmarshal([]byte(a.value), &info); err != nil {
		e.Fatalf("Inspect: %s %v", a.failure, err)
	}
	return info
}

// Each side can take a hold of the other away. Its waiters are woken, and the holder finds
// out: Holdfast's with its next renewal, Redisson's when it unlocks.
func forceUnlock(e *env) {
	victim := map[string]*peer{"go": e.short("go"), "java": e.java[1]}
	for _, d := range e.directions() {
		thief, waiter := d.to, d.from // both directions: the holder's side waits as well
		holder := victim[d.from.side]
		e.lockAgainst(holder, 1, -1)
		waiting := e.waiter(waiter, 2)
		forced := thief.start(e, e.thread(3), "forceUnlock", e.kind.against(), e.key).want("true")
		granted := waiting.want("ok")
		if late := granted.ended.Sub(forced.began); late > bounds.woken {
			e.Errorf("%v: the waiter entered after %v", d, late)
		}
		if holder.side == "go" {
			loss := holder.start(e, e.thread(1), "loss", e.kind.against(), e.key).answer()
			redistest.WantMost(e, loss.ended.Sub(forced.ended), bounds.woken, "told of the loss after %v")
			holder.start(e, e.thread(1), "unlock", e.kind.against(), e.key).wantFailure("lost")
		} else {
			holder.start(e, e.thread(1), "unlock", e.kind.against(), e.key).wantFailure("IllegalMonitorStateException")
		}
		e.unlock(waiter, 2)
		e.free()
		thief.start(e, e.thread(3), "forceUnlock", e.kind.against(), e.key).want("false")
	}
}

// Tokens grow over both sides, whatever ends a hold: unlocking, expiry, force.
func tokens(e *env) {
	last := int64(0)
	grown := func(p *peer, thread int) {
		e.Helper()
		token := p.start(e, e.thread(thread), "token", e.kind.name, e.key).number()
		if token <= last {
			e.Errorf("%s has token %d after %d", p.side, token, last)
		}
		last = token
	}
	ours, theirs := e.short("go"), e.java
	if e.line == earlier { // it learns of a loss when it renews, which it does sooner with a short lease
		theirs = [2]*peer{e.short("java"), e.ownShort("java")}
	}
	for range 3 {
		for _, p := range []*peer{theirs[0], ours, theirs[1]} {
			e.lock(p, 1, -1)
			grown(p, 1)
			e.lock(p, 1, -1) // Redisson takes another one, we do not
			e.unlock(p, 1)
			e.unlock(p, 1)

			e.lock(p, 2, 1000) // and let it expire
			grown(p, 2)
			e.eventually("expiry", patience, func() bool {
				return e.exists(e.key) == 0
			})

			e.lock(p, 3, -1)
			grown(p, 3)
			e.golang[0].start(e, e.thread(4), "forceUnlock", e.kind.name, e.key).want("true")
			if p.side != "java" { // until then the process believes that it holds it
				p.start(e, e.thread(3), "loss", e.kind.name, e.key).answer()
			}
		}
	}
	if e.line == current {
		if token := e.java[0].start(e, e.thread(5), "lockAndGetToken", e.kind.name, e.key).number(); token <= last {
			e.Errorf("lockAndGetToken returned %d after %d", token, last)
		}
		e.unlock(e.java[0], 5)
	}
	e.free()
}

// What a process of Holdfast keeps after Unlock (WithLinger) is no free lock for Redisson, which cannot ask for it. The process looks
// for clients that listen for a release, about once a second, and then gives the lock up. It would keep it for an hour, and polls rarely.
func linger(e *env) {
	keeper, java := e.startGo(e, slices.Concat(shortFlags, []string{"--linger", "1h"})...), e.java[0]
	kept := []string{e.kind.against()}
	if e.kind.name == "write" {
		kept = append(kept, "read")
	}
	for _, name := range kept {
		k := e.as(name)
		k.idle(keeper)
		java.start(e, e.thread(2), "isLocked", k.kind.name, e.key).want("true")
		e.refused(java)
		e.inTime("lock", e.lock(java, 2, -1))

		// Redisson's release is for the process, which keeps the lock again.
		waiting := k.waiter(keeper, 1)
		e.unlock(java, 2)
		waiting.want("ok")
		k.unlock(keeper, 1)
		k.idle(keeper)
		e.inTime("tryLock", java.start(e, e.thread(3), "tryLock", e.kind.name, e.key, patience.Milliseconds(), -1).want("true"))
		e.unlock(java, 3)

		// Redisson takes it away, and has it at once. The process finds that out with its next renewal.
		k.idle(keeper)
		java.start(e, e.thread(4), "forceUnlock", k.kind.name, e.key).want("true")
		java.start(e, e.thread(4), "tryLock", e.kind.name, e.key, 0, -1).want("true")
		e.eventually("the process finds that out", patience, func() bool { return !k.keeps(keeper) })
		waiting = k.waiter(keeper, 1)
		e.unlock(java, 4)
		waiting.want("ok")
		k.unlock(keeper, 1)
		e.inTime("lock", e.lock(java, 2, -1))
		e.unlock(java, 2)
		e.free()
	}
	if e.kind.shared { // readers share what it keeps, and it ends with Redisson's next writer
		e.idle(keeper)
		e.free()
		e.inTime("lock", e.lockAgainst(java, 2, -1))
		e.unlockAgainst(java, 2)
		e.free()
	}
}

// as is the same with another kind of lock.
func (e *env) as(name string) *env {
	other := *e
	other.kind, _ = kindNamed(name)
	return &other
}

// idle has p take the lock and give it up, until p keeps it: while a client of Redisson that has had it still listens, p does not.
func (e *env) idle(p *peer) {
	e.Helper()
	e.eventually("it keeps the lock", patience, func() bool {
		e.lock(p, 1, -1)
		e.unlock(p, 1)
		return e.keeps(p)
	})
}

// keeps asks whether p keeps the lock without a caller.
func (e *env) keeps(p *peer) bool {
	e.Helper()
	return p.start(e, e.thread(1004), "keeps", e.kind.name, e.key).answer().value == "true"
}

// inTime fails unless an acquire was granted as soon as one that waits must be.
func (e *env) inTime(verb string, a answer) {
	e.Helper()
	took := a.ended.Sub(a.began)
	e.Logf("%s: what a process keeps came after %v", verb, took.Round(time.Millisecond))
	if took > bounds.woken {
		e.Errorf("%s: what a process keeps came after %v", verb, took)
	}
}
