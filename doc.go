// Package holdfast provides distributed locks on Redis.
//
// A program makes one [Manager] per process and takes its locks from it. Goroutines, processes and
// Java services (through Redisson) that use the same name share the lock.
//
//   - [Mutex] has one holder at a time.
//   - [FairMutex] is a Mutex that is granted in the order of arrival over all processes.
//   - [RWMutex] has many readers or one writer.
//   - [Semaphore] has at most a number of permits held at a time.
//   - [Multi] takes several locks as one.
//   - [Redlock] is one lock on a majority of independent servers.
//   - [Election] chooses one leader of many processes.
//
// # Usage
//
//	locks, err := holdfast.New(client) // a *redis.Client or *redis.ClusterClient
//	...
//	err = holdfast.Do(ctx, locks.Mutex("stock:42"), func(ctx context.Context, lease *holdfast.Lease) error {
//		return work(ctx) // ctx is cancelled if the lease is lost
//	})
//
// [Do] locks, calls the function, and unlocks. Lock and TryLock return the [Lease] itself:
//
//	lease, err := locks.Mutex("stock:42").Lock(ctx)
//	if err != nil {
//		return err
//	}
//	defer lease.UnlockInto(ctx, &err) // err is the named result of the function
//
// Every kind of lock is a [Locker]; of a Semaphore, [Semaphore.Locker] returns one. LockAsync delivers the lease on a channel; a Multi and a
// Redlock do not have it. [SyncLocker] is for code that takes a sync.Locker.
//
// # Guarantees
//
// A lease is a lock with an expiry time. While a lease is valid, no other owner has a valid lease
// of the same lock, except that readers of an RWMutex share it, and that the valid leases of a Semaphore
// have at most its number of permits. This holds if
//
//   - Redis keeps its data: no fail-over to a replica that lacks it, no restart without it, no
//     eviction, no deletion of the key;
//   - the clocks of the process and the server run at the same rate, within the safety margin;
//   - the code that the lock protects stops when the lease ends.
//
// # Limits
//
// No lock that is built on leases can stop a process that is paused between its last look at the
// lease and its write. If two holders at once would do damage, use [WithFencing], and let the
// resource refuse a token that is smaller than the largest it has seen.
//
// # Owners and re-entry
//
// Go has no thread identity, so a lock belongs to no goroutine. Every acquisition is a new owner,
// with one exception: a call re-enters a lock if its context descends from [Lease.Context] of a
// held lease of that very lock. It then returns at once, with a lease of its own, the same fencing
// token and no Redis command. The lock is free after the last of these leases is unlocked.
//
// Leases of other locks change nothing. A job can hold one lock and start goroutines with its
// context: they exclude each other on every other lock that they take. Only on the job's own lock
// are they one owner. [WithoutOwner] makes them compete there as well.
//
// A writer may take the read side of its RWMutex by re-entry, and may keep reading after it unlocks
// the write side (a downgrade). A reader cannot upgrade: Lock returns [ErrWouldDeadlock]. The same
// error is returned if the owner of a Mutex asks for the FairMutex of that name, or vice versa.
//
// # Leases
//
// In Redis each held lock is a hold: an owner id with a TTL. The deadline of a lease is computed
// from the moment before the last confirmed request was sent. A slow round trip therefore shortens
// the time in which the lease is trusted, and never lengthens it:
//
//	deadline = sent + TTL - margin        margin = max(25 ms, TTL/50), at most TTL/2
//
// Holds are renewed every TTL/3, in batches. A renewal that fails is repeated until the deadline. A
// lease is lost for two reasons only: Redis says that the lock has another owner or none, or the
// deadline has passed. The deadline needs no answer, even if Redis, the network and the client are
// all stuck. If the host sleeps, its timers stop: [Lease.Valid] is right at once, and Done and
// contexts follow with the next renewal.
//
// When a release grants the lock to a waiter through Redis (always, for a FairMutex), the new
// holder starts with a TTL of two seconds, or the releaser's lease if that is shorter. If the new
// holder has died, the others wait only that long. The first renewal, 25 ms later, raises the TTL
// to the full lease. If Redis is silent during those two seconds, the lease ends.
//
// # Losing a lease
//
// When a lease ends, for whatever reason, [Lease.Done] is closed and the contexts of
// [Lease.Context] are cancelled. [Lease.Err] and [context.Cause] return the reason. If the lease
// was lost, [Lease.Unlock] returns that error instead of nil.
//
// # Fencing
//
// With [WithFencing] each grant has a token that is larger than all tokens that the lock has given
// out before: [Lease.FencingToken]. Pass it to the resource with each write, and let the resource refuse
// a token that is smaller than the largest it has seen. An UPDATE that a condition refuses is no error:
// check how many rows it has changed. The counter is a key in Redis without TTL, so
// tokens are as durable as Redis's data. Re-entry returns the same token, and readers that are
// admitted together share one.
//
// # Waiting
//
// Waiters are parked and woken by messages. No goroutine but the caller's own waits.
//
// A local hand-off passes a lock to the next caller of the same process, without a Redis command.
// In a remote hand-off, a release grants the lock to the next process in the lock's queue in Redis
// and notifies it. A remote hand-off costs two commands per acquisition: one to enter the queue and
// one to release.
//
//   - Mutex: the callers of one process are served in the order of their calls, and the first
//     caller represents the process in the queue. While another process waits, local hand-offs
//     continue for at most [WithHandoffSlice]. Processes take turns.
//   - FairMutex: each caller has its own place in the queue. Every hand-off goes through Redis,
//     even within a process. A waiter whose process is silent for longer than [WithFairPatience]
//     loses its place.
//   - RWMutex: the readers of one process share one hold. A waiting writer blocks new readers, in
//     another process as soon as that process has learned of the writer. A release admits either
//     one writer or all readers queued before the next writer, so neither side starves.
//   - Semaphore: as a Mutex. A caller that wants many permits is not passed by one that wants few. Permits
//     that are unlocked go to the next caller of the process only if it wants as many.
//
// With [WithLinger] a process keeps a Mutex or a side of an RWMutex after Unlock, for its own next
// caller, until another process wants it.
//
// A process that hands a Mutex to another process and wants it again within 1 ms may delay its
// request until that millisecond is over. It does so only if, the last time, the lock took 2 ms or
// more to come back. A free Mutex can therefore stay unused for up to 1 ms.
//
// If messages are lost, a waiting process sends a request every [WithPollInterval], and when the
// holder's TTL has run out. TryLock does not wait, and does not overtake a FairMutex's queue.
//
// Redisson's fair-lock waiters share the queue. Redisson's other waiters only listen for messages.
// While any of them listens, one release after at most 16 grants in a row leaves the lock free, and
// both sides compete for it. Where readers join other readers, it is one release of 16 on average.
//
// # Concurrency
//
// All types may be used by many goroutines at a time. In the sense of the Go memory model, an
// Unlock is synchronized before the return of the Lock in the same process that gets the lock next.
// Between processes, Redis's order is the only one.
//
// No call waits inside the Redis client. Lock and TryLock return promptly when their context ends,
// whatever Redis does; a request still in flight is rolled back in the background. docs/OPTIONS.md
// has a table of how long each call can block.
//
// # Errors
//
// Each error of this package matches at least one of these with errors.Is. If a context ended a
// wait, the error also wraps the context's cause. Trouble with Redis is never reported as a lock
// that another owner holds.
//
//   - [ErrNotAcquired]: another owner holds the lock, or ctx ended before it was granted.
//   - [ErrUnavailable]: Redis could not be reached or refused to act; the lock state is unknown.
//   - [ErrLeaseLost], [ErrMaxHold]: the lease ended before its Unlock.
//   - [ErrNotReleased]: Do called its function, and Redis has not confirmed the release.
//   - [ErrReleased], [ErrNotHeld]: the lease was already unlocked.
//   - [ErrNoLeader]: no process leads the Election.
//   - [ErrClosed]: the Manager is closed.
//   - [ErrWouldDeadlock], [ErrWrongKind], [ErrInvalidName], [ErrInvalidOption]: the call is a
//     mistake.
//
// # Redisson
//
// Keys, hash fields, TTLs, channels and messages are those of Redisson's RLock, RFencedLock,
// RFairLock, RReadWriteLock and RPermitExpirableSemaphore, so Java and Go exclude and wake each other. Renewal never shortens
// a TTL. Re-entry is counted in the process, so the hold count in Redis is always 1. Redisson's
// readers do not wait behind a waiting writer.
//
// # Requirements
//
// The server is Redis, or one that speaks its protocol and runs its Lua scripts. Its
// maxmemory-policy must be noeviction, or locks may be evicted. The client is go-redis v9 with its
// default options. Do not disable its ReadTimeout: this is how a silently broken connection is
// detected.
package holdfast
