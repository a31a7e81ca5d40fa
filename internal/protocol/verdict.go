package protocol

import "fmt"

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

// Verdict is the reply of an acquire script that is not a token.
type Verdict struct {
	Code    int64
	State   int64 // of the lock, if another owner is in the way
	TTL     int64 // of the holder, milliseconds; -1: it has none. Of a free lock, when to ask again
	Clock   int64 // the server's time, milliseconds
	Foreign bool  // the holder, or the next one, is Redisson's
	Wrong   error // which key holds what, if one holds something of another kind
}

// States of a lock that is not granted.
const (
	StateHeld    = 0 // by another owner
	StateOpen    = 1 // free, and others are before the caller
	StateOffered = 2 // free, and offered to a waiter of Redisson; waited for as one that is held
	StateCrowded = 3 // free, and more of the dead are before the caller than one request removes: the next goes on at once
	StateLingers = 4 // by another owner that may only linger, and no other waits
)

// ParseVerdict reads what follows a code. What a later version may add behind it is ignored.
func ParseVerdict(value any) (v Verdict, ok bool) {
	list, _ := value.([]any)
	if len(list) == 0 {
		return v, false
	}
	if v.Code, ok = list[0].(int64); !ok {
		return v, false
	}
	switch rest := list[1:]; v.Code {
	case AcquireHeld:
		var n [4]int64
		if !integers(rest, n[:]) {
			return v, false
		}
		v.State, v.TTL, v.Clock, v.Foreign = n[0], n[1], n[2], n[3] != 0
	case AcquireKind:
		v.Wrong, ok = wrongKey(rest)
	default:
		ok = v.Code == AcquireBuried
	}
	return v, ok
}

// Refusal is the reply of multi_acquire that is not a grant.
type Refusal struct {
	Verdict
	Lock   int64 // which of the locks it is about, from 1
	Waited bool  // lock_acquire has more to say: it is free and others wait for it, or its holder may linger
}

// ParseRefusal reads a reply of multi_acquire that is not a token.
func ParseRefusal(value any) (r Refusal, ok bool) {
	list, _ := value.([]any)
	var n [2]int64
	if !integers(list, n[:]) {
		return r, false
	}
	r.Code, r.Lock = n[0], n[1]
	switch rest := list[2:]; r.Code {
	case AcquireHeld:
		var waited [1]int64
		ok = integers(rest, waited[:])
		r.Waited = waited[0] != 0
	case AcquireKind:
		r.Wrong, ok = wrongKey(rest)
	default:
		ok = false
	}
	return r, ok
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
func wrongKey(list []any) (error, bool) {
	if len(list) < 2 {
		return nil, false
	}
	key, ok1 := list[0].(string)
	holds, ok2 := list[1].(string)
	return fmt.Errorf("the key %s holds %s", key, holds), ok1 && ok2
}
