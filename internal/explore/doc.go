// Package explore visits the states of small worlds: locks (package lock), what protocol makes of their requests, and the library's
// own scripts, without goroutines, connections or a clock. It is there for its tests.
//
//	go test ./internal/explore                                     all states of small worlds, and walks through large ones
//	go test ./internal/explore -run TestStates -args -deep         with one more fault each, which takes hours
//	go test ./internal/explore -run TestWalks -args -seed 1000 -walks 5000
//	go test ./internal/explore -run TestMutants                    each planted bug must be found
//
// # A world
//
// A Plan says which locks there are, who wants them, and what may go wrong. A process is what internal/engine is in production, as
// plain data: locks, the inbox, the schedule, requests on their way. Scripts run on vredis.Bare. All that can happen at a moment is a
// list of steps: a request runs or is answered, a message is heard, a timer fires, a caller comes, unlocks or leaves, time passes to
// the next event, a fault strikes. The first step of the list is what happens if all goes well.
//
// Steps in any order are free. Faults are counted, and so is time that passes although something is on its way. Within these
// bounds Explore visits each state. It begins each time with the first step until the world is at rest: so from each state, whatever
// went wrong before, all callers are served and nothing is left in Redis, or the search is red. A state is known again by its fingerprint.
//
// Walk goes through larger worlds by chance. A seed is one walk, byte for byte.
//
// # The judge
//
// After each step package judge is fed with what callers have and what the server has: overlap, claim without hold, permits, TTL, token, order, queue. Where time has
// to pass because nothing is on its way, and nothing has gone wrong, nothing may be so that must not last: lost wake-up, unheard, forsaken hold and place,
// kept from others. These rules are about what no other world can see: a waiter has a request under way or a timer (lost wake-up); a process at rest has nothing in
// Redis (forsaken hold); nothing is left behind; no lease is said to be lost that was not; no
// process asks while it is the turn of one of Redisson's (turn); a grant that no replica has acknowledged is none (not acknowledged).
//
// A red search prints each step and how to see them again. It has the fewest faults if the plan's bounds were raised one by one.
//
// # What is not explored
//
// The engine's own part (mutexes, goroutines, batches), go-redis, real clocks and several servers: internal/sim and internal/chaos have them.
package explore
