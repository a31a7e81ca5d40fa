// Package holdfast provides distributed locks on Redis. A program makes one Manager and
// takes its locks from it; goroutines, processes and Java services (through Redisson)
// share them. Mutex is mutual exclusion, FairMutex the same in the order of arrival over
// all processes, and RWMutex has many readers or one writer. NewMulti takes several locks
// as one, and NewRedlock one lock on a majority of independent servers.
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
// Do is the shorter way: it locks, calls a function with a context that ends if the lock
// is lost, and unlocks. Every kind of lock is a Locker; TryLock asks once, LockAsync (not
// of a Multi or a Redlock) delivers on a channel, and SyncLocker is for code that takes a
// sync.Locker.
//
// # What is promised
//
// A lease is a promise with an end. While a lease is valid, no other owner has a valid
// lease of the same lock (readers of an RWMutex share it), provided that
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
// Go has no thread identity, so a lock belongs to no goroutine. Every acquisition is a new owner,
// with one exception: a call re-enters a lock if its context descends from [Lease.Context] of a
// lease of that very lock which is still held. It then returns at once, with a lease of its own, the
// same fencing token and no Redis command. The lock is free after the last of these leases is
// unlocked.
//
// Leases of other locks change nothing. A job can hold one lock and start goroutines with its
// context: they exclude each other on every lock that they take. Only on the job's own lock are
// they one owner; [WithoutOwner] makes them compete there as well.
//
// A holder of an RWMutex's write side may take its read side by re-entry, and keep that when it
// unlocks the write side. The reverse would wait for itself and returns ErrWouldDeadlock. So does a
// FairMutex under the context of the Mutex of that name, and the other way round.
//
// # Leases and validity
//
// What the process has in Redis is a hold: one owner id with a TTL. The deadline of its
// leases is counted from before the last confirmed request was sent, so that a slow round
// trip shortens the time in which it is trusted and never stretches it:
//
//	deadline = sent + TTL - margin        margin = max(25 ms, TTL/50), at most TTL/2
//
// A lock that a release grants through Redis, as every one of a FairMutex does, has a short TTL at
// first: two seconds, or the releaser's lease if that is shorter. If the process that gets it has died,
// the others wait only that long. After 25 ms the first renewal gives it its own TTL, which shortens
// nothing; until that is confirmed, two seconds of silence end the lease.
//
// Holds are renewed every TTL/3 by one scheduler, in batches, and a renewal that fails
// is repeated until the deadline. A lease is lost for two reasons only: Redis says that it
// has another owner or none, or the deadline has passed. The latter needs no answer from
// anybody, even if Redis, the network and the client are all stuck. A host that sleeps stops the
// timers: then only Valid is right at once, and Done and contexts follow with the next renewal.
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
// Waiters are parked and woken by messages; no goroutine but the caller's own waits. To pass the
// lock on inside a process is called a hand-off here, to grant it to another process a hand-over.
//
// Callers in one process that want a Mutex wait in the order in which they came; the
// first of them stands for all in the queue that the lock has in Redis. Unlock passes the
// lock to the next caller without a Redis command. Once another process waits, that goes
// on for a hand-off slice (see WithHandoffSlice); then the lock is released. A release
// grants the lock to the next process in the queue and tells it so. A hand-over between
// processes therefore costs two commands per acquisition, one to stand in the queue and
// one to release, and a renewal if it is held for longer than 25 ms; processes take turns. Who wants a Mutex
// again within a millisecond of handing it to another process asks for it when that millisecond is
// over, if it stayed away for 2 ms or more the time before; so a free Mutex can wait that long.
//
// A FairMutex has a place in that queue for each caller, so that one order holds over
// all processes. Each grant then comes from Redis, also within a process. A waiter whose
// process is silent for longer than WithFairPatience loses its place.
//
// The readers of one process share one hold of an RWMutex. A waiting writer keeps new
// readers out, those of another process as soon as that process has learned of it, and a release
// lets in either one writer or all readers in front of the next waiting writer, so that neither side
// starves.
//
// Waiters of Redisson get their turn too. Those of its fair lock stand in the same queue.
// The others do not; while any of them listen, one release after at most 16 grants in a
// row grants to nobody, and both sides race for the lock. Readers that come in beside others
// do not know the count, so there it is one of 16 on average.
//
// Should messages be lost, a waiting process asks again every poll interval
// (WithPollInterval) and when the holder's TTL has run out. A TryLock does not wait, and
// does not overtake a FairMutex's queue.
//
// # Concurrency
//
// All types may be used by many goroutines at a time. In the sense of the Go memory
// model, an Unlock is synchronized before the return of the Lock in the same process that
// gets the lock next; between processes, Redis's order is the only one. No call waits
// inside the Redis client: Lock and TryLock return promptly when their context ends,
// whatever Redis does, and what was under way then is undone in the background.
//
// # Losing a lease
//
// When a lease ends, for whatever reason, Lease.Done is closed and the contexts from
// Lease.Context are cancelled; context.Cause and Lease.Err say why. If it was lost, Unlock
// returns that error instead of nil.
//
// # Errors
//
// Each error is one fact, visible to errors.Is: ErrNotAcquired, somebody else has the
// lock; ErrUnavailable, nobody knows, because Redis could not be asked; ErrLeaseLost
// and ErrMaxHold, a lease ended before its Unlock; ErrNotHeld, it had been unlocked;
// ErrClosed, the manager is; and the mistakes, ErrWouldDeadlock, ErrWrongKind,
// ErrInvalidName and ErrInvalidOption. No call returns ErrReleased by itself: Lease.Err and
// context.Cause say so after Unlock, and the error of a wait under such a context has it as the
// cause. If a context ended a wait, its cause is in the chain as well. Trouble with Redis is never
// reported as a lock that somebody holds.
//
// # Redisson
//
// Keys, hash fields, TTLs, channels and messages are Redisson's (RLock, RFencedLock,
// RFairLock and RReadWriteLock), so Java and Go exclude and wake each other. Renewal
// never shortens a TTL. Re-entry is counted in the process, so the hold count in Redis is
// always 1. Redisson's readers do not wait behind a waiting writer.
//
// # Requirements
//
// A Redis server, or one that speaks its protocol and runs its Lua scripts; the tests
// run Redis 7. The client is go-redis v9; its default options will do, since no call waits
// for its retries and time-outs. Leave its ReadTimeout on: a connection that has silently died
// is given up by it. The server's maxmemory-policy must be
// noeviction, or locks may be evicted.
package holdfast
