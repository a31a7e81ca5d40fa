// Package voting is the rule by which candidates for one lock on several independent members get out
// of each other's way.
//
// A candidate asks all members at the same time and has the lock with a majority. If several ask at
// the same time, the votes can split, and then all but one must give way, although no candidate knows
// of another. So the members have an order that all candidates know. A candidate without a majority
// waits in the queue of the first member that refused it, of those where it has not waited in vain
// lately. It keeps the votes of the members before that one and gives back all others. A candidate
// therefore waits only for members behind those whose votes it has, so candidates never wait for each
// other in a circle, whatever each of them believes about the members.
//
// A member that is silent must not decide how long that takes: one that is late, compared with those
// that answered, counts as absent.
//
// The package is pure: it reads no clock. A search in its tests visits every state of a few
// candidates that follow it.
package voting

import (
	"math"
	"slices"
	"time"
)

// Answer is what a member has said in a round.
type Answer uint8

const (
	Open    Answer = iota // nothing yet
	Granted               // the candidate has its vote
	Refused               // another owner has it
	Failed                // it cannot be asked, or denies
)

// Member is one member in one round, as a candidate sees it.
type Member struct {
	Answer Answer
	Lag    time.Duration // how long the member takes to answer, or has been taking
	Vain   bool          // to wait there was in vain lately: it comes behind the others
}

// State is how a round stands.
type State uint8

const (
	Pending State = iota // an answer that matters is still to come
	Won                  // a majority has granted the lock
	Lost                 // no majority will, unless absent members answer
)

// Quorum is how many of n members are a majority.
func Quorum(n int) int { return n/2 + 1 }

// A member counts as absent beyond lagFactor times what the others take, and leeway: a scheduler that
// comes late to one answer of several is no silence.
const (
	lagFactor = 4
	leeway    = 5 * time.Millisecond
)

// Limit returns the lag beyond which a member counts as absent. A majority of all members is always
// within it, if as many have not failed: a round is never lost because all are slow.
func Limit(all []Member) time.Duration {
	lags := make([]time.Duration, 0, len(all))
	for _, m := range all {
		if m.Answer != Failed {
			lags = append(lags, m.Lag)
		}
	}
	need := Quorum(len(all))
	if len(lags) < need {
		return math.MaxInt64
	}
	slices.Sort(lags)
	lag := lags[need-1]
	if lag > math.MaxInt64/(2*lagFactor) {
		return math.MaxInt64
	}
	return leeway + lagFactor*lag
}

// Count returns how a round stands and, of one that is lost, the member to wait at: -1 if none has
// refused.
func Count(all []Member) (s State, at int) {
	limit := Limit(all)
	due := func(m Member) bool { return m.Answer == Open && m.Lag <= limit }
	granted, open, at := 0, 0, -1
	for i, m := range all {
		switch {
		case m.Answer == Granted:
			granted++
		case due(m):
			open++
		case m.Answer == Refused && (at < 0 || before(all, i, at)):
			at = i
		}
	}
	switch need := Quorum(len(all)); {
	case granted >= need:
		return Won, -1
	case granted+open >= need:
		return Pending, -1
	}
	for i, m := range all {
		if due(m) && at >= 0 && before(all, i, at) {
			return Pending, -1 // if it refuses, that is the place to wait
		}
	}
	return Lost, at
}

// Keeps reports whether a candidate that waits at a member keeps the vote of another meanwhile. What the
// candidate thinks of the members does not count, only the order that all candidates share: two that shun
// different members would otherwise keep what the other waits for.
func Keeps(vote, at int) bool { return vote < at }

// before reports whether member i comes before member j.
func before(all []Member, i, j int) bool {
	if all[i].Vain != all[j].Vain {
		return all[j].Vain
	}
	return i < j
}
