package protocol

import (
	"fmt"

	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/validity"
)

// Codes of the acquire scripts, where the answer is not a token.
const (
	AcquireHeld   = 0
	AcquireKind   = -1
	AcquireBuried = -2
)

// Codes of the release scripts below 0.
const (
	ReleaseGone       = -1 // the lock has no owner
	ReleaseStolen     = -2 // another owner does
	ReleaseHandedOver = -3 // granted to another process, or left to Redisson
	ReleaseCrowded    = -4 // free; the next request removes more of the dead who stand in front
)

// ForceOtherOwner is the reply of force_release if the owner that it was given does not hold the lock.
const ForceOtherOwner = -2

// Codes of the renew scripts, per hold; anything else is a text, what Redis said instead.
const (
	RenewGone   = 0
	RenewDone   = 1
	RenewStolen = 2
)

// Codes of keep, per waiter.
const (
	KeepGone    = 0 // it has no place any more
	KeepDone    = 1
	KeepGranted = 2 // it has the lock
)

// States of a lock that is not granted.
const (
	StateHeld    = 0 // by another owner
	StateOpen    = 1 // free, and others are before the caller
	StateOffered = 2 // free, and offered to a waiter of Redisson; waited for as one that is held
	StateCrowded = 3 // free, and more of the dead are before the caller than one request removes: the next goes on at once
	StateLingers = 4 // by another owner that may only linger, and no other waits
	StateTooMany = 5 // a semaphore has fewer permits in all than the claim is for
)

// states are those in the words of package lock.
var states = map[int64]lock.State{StateOpen: lock.LeftOpen, StateCrowded: lock.CrowdedQueue, StateLingers: lock.Lingering, StateTooMany: lock.TooMany}

// ParseVerdict reads the reply of an acquire script that is not a token into x: a code, and what follows it. What a later version may
// add behind that is ignored.
func ParseVerdict(reply any, x *lock.Reply) (ok bool) {
	list, _ := reply.([]any)
	if len(list) == 0 {
		return false
	}
	switch rest := list[1:]; list[0] {
	case int64(AcquireHeld):
		var n [4]int64 // state, TTL, clock, whether the holder, or the next one, is Redisson's
		if !integers(rest, n[:]) {
			return false
		}
		if len(rest) > len(n) { // of a semaphore
			total, _ := rest[len(n)].(int64)
			x.Total = int(total)
		}
		x.Says, x.State, x.TTL, x.Clock, x.Foreign = lock.Held, states[n[0]], validity.Duration(n[1]), n[2], n[3] != 0
		return true
	case int64(AcquireKind):
		return wrongKey(rest, x)
	case int64(AcquireBuried):
		x.Says = lock.Buried
		return true
	}
	return false
}

// ParseRefusal reads the reply of multi_acquire that is not a token into x. about is which of the locks it is about, from 1. waited is
// that lock_acquire has more to say: the lock is free and others wait for it, or its holder may linger.
func ParseRefusal(reply any, x *lock.Reply) (about int64, waited, ok bool) {
	list, _ := reply.([]any)
	var n [3]int64 // code, lock, waited
	switch {
	case integers(list, n[:]) && n[0] == AcquireHeld:
		x.Says = lock.Held
		return n[1], n[2] != 0, true
	case integers(list, n[:2]) && n[0] == AcquireKind:
		return n[1], false, wrongKey(list[2:], x)
	}
	return 0, false, false
}

// integers reads the first of a list.
func integers(list []any, n []int64) (ok bool) {
	if len(list) < len(n) {
		return false
	}
	for i := range n {
		if n[i], ok = list[i].(int64); !ok {
			return false
		}
	}
	return true
}

// wrongKey reads a key, and what it holds.
func wrongKey(list []any, x *lock.Reply) bool {
	if len(list) < 2 {
		return false
	}
	key, ok1 := list[0].(string)
	holds, ok2 := list[1].(string)
	x.Says, x.Cause = lock.OtherKind, fmt.Errorf("the key %s holds %s", key, holds)
	return ok1 && ok2
}
