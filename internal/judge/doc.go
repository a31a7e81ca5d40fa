// Package judge says which promises of locks were broken. It is pure: no clock, no goroutine, no I/O. A world tells it in the order of
// time what callers ask and are answered, and what Redis has; it takes note of violations. Three worlds do: internal/sim from its virtual servers,
// internal/explore from its states, internal/chaos from a server's append-only file and the histories of its clients.
//
// # The rules
//
// Exclusion (claims.go). Overlap: two owners' leases are valid at one instant. Claim without hold: a lease is valid for longer than Redis
// keeps the lock for its process, or a Redlock's for longer than a majority of members do. TTL: a lock has none. Token: a fencing token is not larger
// than those before. Permits (lock.go): of a semaphore, those that are available and those that are held are not as many as there are.
//
// Order (queue.go). Order: a lock is granted past a waiter that stands before in the queue. Queue: it is not in the order of arrival.
// Resurrection (lock.go): an owner id that was given back holds the lock again.
//
// What must not last (lasting.go). Lost wake-up: a lock is free, and a caller waits. Unheard: Redis has granted the lock to a process whose
// caller waits for it. Forsaken hold, forsaken place: Redis keeps what no caller wants. Kept from others: a process keeps a lock after Unlock, and
// another one stands in the queue. Whatever lasts is judged by a bound: a short one where nothing is wrong, and has not been for a while, and a long
// one elsewhere. What is wrong, and the bounds, are the world's.
//
// Elections (seat.go). Record: a valid term's record in Redis is not what its leader was told is published. False leader: an answer names one that did
// not lead during the call. Observed terms: they do not grow. Unobserved: an observer was not told of the last change.
//
// Answers (answers.go). False refusal, refused for an idle lock, false loss, lost without cause, hidden loss, told late.
//
// A judge is wrong more often than the library: an alarm is traced to its end before anything is changed.
package judge
