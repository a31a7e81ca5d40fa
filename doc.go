// Package holdfast provides distributed locks on Redis: one Manager per process, and
// on it locks that processes, goroutines and Java services (through Redisson) share.
// Mutex is mutual exclusion, FairMutex the same in the order of arrival over all
// processes, RWMutex has many readers or one writer, NewMulti takes several locks as one,
// and NewRedlock one lock on a majority of independent servers.
//
// # Usage
//
//	locks, err := holdfast.New(client) // a *redis.Client or *redis.ClusterClient
//	...
//	lease, err := locks.Mutex("stock:42").Lock(ctx)
//	if err != nil {
//		return err
//	}
//	defer lease.Unlock(ctx)
//
// or, with the lock's life tied to a function and to a context that ends if the lock
// is lost, Do. Every kind of lock is a Locker; TryLock asks once, LockAsync delivers on
// a channel, SyncLocker is for code that takes a sync.Locker.
//
// # What is promised
//
// A lease is a promise with an end. While a lease is valid, no other lease of the same
// lock is, provided that
//
//   - Redis keeps its data: no fail-over to a replica that lacks it, no restart without
//     it, no eviction, nobody deletes the key;
//   - the process's clocks run, up to the safety margin, as fast as the server's;
//   - the code that the lock protects stops when the lease ends.
//
// Nothing built on leases can promise more: a process that is paused between its last
// look at the lease and its write cannot stop itself. Where an overlap would do damage,
// use WithFencing and let the resource refuse tokens smaller than the largest it has
// seen.
//
// # Owners and re-entry
//
// Go has no thread identity, so a lock belongs to no goroutine. Every acquisition is a
// new owner, and Lease.Context returns a context that carries it: a Lock of the same
// lock under that context re-enters, with a lease of its own, the same fencing token
// and no Redis command. Goroutines that share such a context are one owner;
// WithoutOwner makes them compete. The owner of an RWMutex's write side may take its
// read side too, and keep that when it unlocks the other; the reverse would wait for
// itself and is ErrWouldDeadlock.
//
// # Leases and validity
//
// A hold's deadline is counted from before its last confirmed request was sent, so that
// a slow round trip shortens our trust and never stretches it:
//
//	deadline = sent + TTL - margin        margin = max(25 ms, TTL/50), at most TTL/2
//
// Holds are renewed every TTL/3 by one scheduler, in batches, and a renewal that fails
// is repeated until the deadline. A lease is lost by "not the owner" and by the deadline
// only, and by then even if Redis, the network and the client are all stuck.
//
// # Fencing
//
// With WithFencing each grant has a token, Lease.Token, larger than all that the lock
// has given out before. Hand it to the resource with each write, and let the resource
// refuse tokens smaller than the largest it has seen. The counter is a key in Redis
// without TTL: tokens are as durable as Redis's data. Re-entry returns the same token,
// and readers that come in together share one.
//
// # Waiting
//
// A waiter is parked, not polling, and no goroutine but the caller's own waits for it.
//
// The callers of one process that want a Mutex queue in the order in which they came;
// the first of them stands for all in the queue that the lock has in Redis. Unlock
// passes the lock to the next caller without a Redis command; once another process
// waits, it does so for a hand-off slice (WithHandoffSlice) and then releases. A
// release grants the lock to the next process in the queue and tells it, so that a
// hand-over between processes costs two commands per acquisition: standing in the
// queue, and the release. Processes take turns.
//
// A FairMutex has a place in that queue for each caller, so that one order holds over
// all processes. Each grant then comes from Redis, also within a process. Who falls
// silent for longer than WithFairPatience loses its place.
//
// The readers of one process share one hold of an RWMutex. A waiting writer, in
// whichever process, keeps new readers out, and a release lets in either one writer or
// all readers up to the next one, so that neither side starves.
//
// Redisson's waiters are let in too. Its fair ones stand in the same queue. While others
// of it listen, a release after at most 16 grants in a row is left open, and both sides race
// for the lock.
//
// Should messages be lost, a waiting process asks again every poll interval
// (WithPollInterval) and when the holder's TTL has run out. Nothing spins. A TryLock does
// not wait and does not overtake a FairMutex's queue.
//
// # Concurrency
//
// All types may be used by many goroutines at a time. An Unlock happens before the
// return of the Lock that gets the lock next, in the same process; between processes
// Redis's order is the only one. No call waits inside the Redis client: Lock and
// TryLock return promptly when their context ends, whatever Redis does, and what was
// under way then is undone in the background.
//
// # Losing a lease
//
// Lease.Done is closed, and the contexts from Lease.Context are cancelled, when a lease
// ends; context.Cause and Lease.Err say why. Unlock then returns that error instead of
// nil.
//
// # Errors
//
// Each error is one fact, visible to errors.Is: ErrNotAcquired, somebody else has the
// lock; ErrUnavailable, nobody knows, because Redis could not be asked; ErrLeaseLost
// and ErrMaxHold, a lease ended before its Unlock; ErrNotHeld, it had been unlocked;
// ErrClosed; and the mistakes, ErrWouldDeadlock, ErrWrongKind, ErrInvalidName and
// ErrInvalidOption. No call fails with ErrReleased: it is why a lease ended that was
// unlocked. The cause of a context that ended a wait is in the chain as well. Trouble with
// Redis is never reported as a lock that somebody holds.
//
// # Redisson
//
// Keys, hash fields, TTLs, channels and messages are Redisson's (RLock, RFencedLock,
// RFairLock and RReadWriteLock), so Java and Go exclude and wake each other. Renewal
// never shortens a TTL, and re-entry is counted in the process, so that the hold count
// in Redis is 1. Redisson's readers do not wait for writers that wait.
//
// # Requirements
//
// A Redis server, or one that speaks its protocol and runs its Lua scripts; the tests
// run Redis 7. The client is go-redis v9, built with default options if you like:
// Holdfast relies on none of its retries and time-outs. The server's maxmemory-policy
// must be noeviction, or locks may be evicted.
package holdfast
