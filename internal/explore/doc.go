// Package explore visits the states of small worlds: locks (package lock), what protocol makes of their requests, and the library's
// own scripts, without goroutines, connections or a clock. It is there for its tests.
//
//	go test ./internal/explore                                     all states of small worlds, and walks through large ones
//	go test ./internal/explore -run TestStates -args -deep         with one more fault each, which takes hours
//	go test ./internal/explore -run TestWalks -args -seed 1000 -walks 5000
//	go test ./internal/explore -run TestMutants -args -mutants all each planted bug must be found
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
// # The judges
//
// After each step: no two owners have a lock, and the server knows each that believes to have it; each key has a TTL; fencing tokens
// grow; a fair lock's queue is in the order of arrival; a waiter has a request under way or a timer; a process at rest has nothing in
// Redis; no lease is said to be lost that was not; no process passes a lock on for more than two slices while another one waits; it
// does not ask while it is the turn of one of Redisson's; a grant that no replica has acknowledged is none. Where time has to pass because nothing is on its way,
// and nothing has gone wrong, no lock is free, or granted unheard, or kept for no caller, while a caller waits.
//
// A red search prints each step and how to see them again. It has the fewest faults if the plan's bounds were raised one by one.
//
// # What is not explored
//
// The engine's own part (mutexes, goroutines, batches), go-redis, real clocks and several servers: internal/sim and internal/chaos have them.
package explore
