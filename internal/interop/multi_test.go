package interop

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Redisson's MultiLock and RedLock are made of locks that we can hold as well.
func multiLock(e *env) {
	java, golang := e.java[0], e.golang[0]
	for _, multi := range []struct {
		kind    string
		members int
		misses  int // members that may be missing
	}{{"multi", 3, 0}, {"red", 3, 1}} {
		var members []env
		var keys []string
		for i := range multi.members {
			m := *e
			m.key = fmt.Sprintf("%s:%s:%d", e.key, multi.kind, i)
			members, keys = append(members, m), append(keys, m.key)
		}
		all := *e
		all.kind.name, all.key = multi.kind+"/"+e.kind.name, strings.Join(keys, ",")

		// We hold as many as it can miss: it gets the others.
		for i := range multi.misses {
			members[i].lock(golang, 1, -1)
		}
		java.start(e, e.thread(1), "tryLock", all.kind.name, all.key, 12_000, -1).want("true") // it waits a third of that for each
		for i := multi.misses; i < multi.members; i++ {
			members[i].refused(golang)
		}
		all.unlock(java, 1)

		// One more, and it gets none and leaves none behind.
		members[multi.misses].lock(golang, 1, -1)
		java.start(e, e.thread(1), "tryLock", all.kind.name, all.key, 300, -1).want("false")
		for i := multi.misses + 1; i < multi.members; i++ {
			members[i].free()
		}

		// It waits, and is woken when we give one back.
		waiting := java.start(e, e.thread(1), "lock", all.kind.name, all.key, -1)
		members[multi.misses].parked(java, 1)
		for i := range multi.misses + 1 {
			members[i].unlock(golang, 1)
		}
		waiting.want("ok")
		for i := range members {
			if i > multi.misses {
				members[i].refused(golang)
			}
		}
		all.unlock(java, 1)
		for _, m := range members {
			m.free()
		}
	}
}

// Redisson's spin lock is the same lock, but sends no message when it is released: a waiter of
// Holdfast finds out when it polls.
func spinLock(e *env) {
	const poll = 300 * time.Millisecond
	golang, java := e.startGo(e, "--poll", poll.String()), e.java[0]
	spin := *e
	spin.kind.name = "spin"

	spin.lock(java, 1, -1)
	e.refused(golang)
	waiting := e.waiter(golang, 2)
	released := spin.unlock(java, 1)
	if waited := waiting.want("ok").ended.Sub(released.began); waited > poll+slack {
		e.Errorf("entered %v after the spin lock was released, polling every %v", waited, poll)
	}
	spin.refused(java)
	waiting = spin.java[1].start(e, e.thread(2), "lock", "spin", e.key, -1)
	released = e.unlock(golang, 2)
	redistest.WantMost(e, waiting.want("ok").ended.Sub(released.began), slack, "the spin lock entered %v after ours was released")
	spin.unlock(spin.java[1], 2)
	e.free()
}
