package lock

import (
	"slices"
	"time"
)

// rules are what makes a kind of lock, or a side of one. All else is the same for all kinds: the state machine asks the rules of
// a kind, and never which kind it is (TestPolicy_KindsAreComparedInTheirFiles). A kind has a file: mutex.go, fair.go and rw.go have the rules and
// what they need.
//
// What a lock asks, it asks of the kind that the lock was made for; what a hold or a waiter asks, of its own side of the lock.
type rules struct {
	bidsEach   bool // each waiter has a bid, and a place of its own in Redis's queue; else one bid stands for all waiters of the process
	shared     bool // a hold excludes only holds that are not shared, and all callers here that wait for one can have it
	passes     bool // a hold whose last lease is gone goes to the next waiter here, without a word to Redis; see Hold.passes
	lingers    bool // a hold that no caller uses may stay with the process: see linger.go
	stepsAside bool // the caller that comes back after the lock went to another process lets a moment pass; see mutex.go
}

// kinds are the rules of all kinds that have holds.
var kinds = [...]rules{MutexKind: mutexRules, FairKind: fairRules, WriteKind: writeRules, ReadKind: readRules}

// rules are those of a kind.
func (k Kind) rules() *rules { return &kinds[k] }

// Shared reports whether several owners in several processes can hold a lock of this kind at a time.
func (k Kind) Shared() bool { return k.rules().shared }

// Lingers reports whether the process can keep a lock of this kind after Unlock.
func (k Kind) Lingers() bool { return k.rules().lingers }

// rules are those of the lock.
func (lk *Lock) rules() *rules { return lk.kind.rules() }

// admits reports whether a hold of kind k can be beside those of the process.
func (lk *Lock) admits(k Kind) bool {
	return lk.hold == nil && (k.rules().shared || lk.reads.none())
}

// conflicts returns the holds beside which Redis does not grant one of kind k, unless they were deleted there.
func (lk *Lock) conflicts(k Kind) []*Hold {
	var all []*Hold
	if !k.rules().shared {
		all = append(all, lk.reads.all()...)
	}
	if lk.hold != nil {
		all = append(all, lk.hold)
	}
	return all
}

// inTheWay reports whether a hold or a waiter of this process keeps a caller that does not wait from getting
// the lock. A hold beyond its deadline does not, even if its end has not been handled yet, after a pause of the
// process. Then the caller sends a request.
func (lk *Lock) inTheWay(k Kind, now time.Time) bool {
	switch front := lk.waiters.head; {
	case lk.hold != nil:
		return now.Before(lk.hold.Deadline)
	case k.rules().shared:
		return front != nil && !front.Once && !front.Kind.rules().shared
	}
	return slices.ContainsFunc(lk.reads.all(), func(h *Hold) bool { return now.Before(h.Deadline) })
}

// take adds h, which has just been granted, to what the process holds.
func (lk *Lock) take(h *Hold) {
	if h.Kind.rules().shared {
		lk.addReader(h)
	} else {
		lk.hold = h
	}
}
