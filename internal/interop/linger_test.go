package interop

import (
	"slices"
	"time"
)

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
