// Package holdfast provides distributed locks on Redis: one Manager per process, and
// on it mutexes that processes, goroutines and Java services (through Redisson) share.
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
// is lost, Do.
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
// WithoutOwner makes them compete.
//
// # Leases and validity
//
// A hold's deadline is counted from before its last confirmed request was sent, so that
// a slow round trip shortens our trust and never stretches it:
//
//	deadline = sent + TTL - margin        margin = max(25 ms, TTL/50), at most TTL/2
//
// Holds are renewed every TTL/3 by one scheduler, in batches, and a renewal that fails
// is repeated until the deadline. Only "not the owner" and the deadline end a lease. It
// ends by then even if Redis, the network and the client are all stuck.
//
// # Waiting
//
// The callers of one process queue in the order in which they came; one of them at a
// time, per lock, competes in Redis for all of them. Unlock passes the lock to the next
// caller without a Redis command, for a hand-off slice (WithHandoffSlice), after which
// other processes are let in. A waiting process is woken by the message that every
// release publishes; should messages be lost, it asks again every poll interval
// (WithPollInterval) and when the holder's TTL has run out. Nothing spins, and no
// goroutine is parked for a waiter but the caller's own.
//
// Between processes there is no order: whoever asks first after a release has it.
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
// # Redisson
//
// Keys, hash fields, TTLs, channels and messages are Redisson's (RLock and
// RFencedLock), so Java and Go exclude and wake each other. Renewal never shortens a
// TTL, and re-entry is counted in the process, so that the hold count in Redis is 1.
//
// # Requirements
//
// A Redis server, or one that speaks its protocol and runs its Lua scripts; the tests
// run Redis 7. The client is go-redis v9, built with default options if you like:
// Holdfast relies on none of its retries and time-outs. The server's maxmemory-policy
// must be noeviction, or locks may be evicted.
package holdfast
