package protocol

import "strconv"

// Some arguments say several things, in words and whole numbers, because each argument costs Redis about a quarter of a
// microsecond. The preludes place.lua and offer.lua take them apart.

// Place is what a caller wants of the queue if it is not granted the lock.
type Place string

const (
	NoPlace   Place = "none" // it does not wait
	NewPlace  Place = "new"  // a place, or the one that it has
	SamePlace Place = "same" // the place that it had, or if that was taken away, one in front
	AskPlace  Place = "ask"  // one until the holder has answered
)

// Stand says how a caller waits. A deaf process hears no inbox. The place is kept for patience milliseconds.
func Stand(place Place, deaf bool, patience int64) string {
	inbox := "heard"
	if deaf {
		inbox = "deaf"
	}
	return string(place) + " " + inbox + " " + number(patience)
}

// Offer says how to grant a lock to a waiter: for claim milliseconds, as which grant in a row, and whether PUBSUB NUMSUB
// counts all listeners.
func Offer(claim int64, turn int, counted bool) string {
	if counted {
		return number(claim) + " " + strconv.Itoa(turn) + " 1"
	}
	return number(claim) + " " + strconv.Itoa(turn) + " 0"
}

// Wait says in an acquire how a caller waits, and how to grant the lock to another waiter. The command publish tells
// Redisson's.
func Wait(stand, offer, publish string) string { return stand + " " + offer + " " + publish }
