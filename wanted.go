package holdfast

// Wanted returns a channel that is closed when another owner waits for the lock: for long work that can pause. Unlock, and call Lock
// again, which comes behind the other owner. Each call returns the same channel. It stays open if the lease ends first.
//
// A caller of the same process that waits closes it at once. For other processes, and for clients of Redisson, the Manager asks Redis
// once a second, from the first call of Wanted until the channel is closed or the lease ends. [WithWanted] tells it sooner. While Redis
// does not answer, the channel stays open. The other owner may have stopped waiting since.
//
// For a reader it is a writer that waits, and for permits a caller that waits for permits. TryLock does not wait, and does not close
// the channel, unless the Manager asks just while a TryLock waits for the holder's answer ([WithLinger]). For several locks it is
// closed when another owner waits for one of them.
func (l *Lease) Wanted() <-chan struct{} {
	in, err := l.check("Wanted")
	if err != nil {
		return unwanted
	}
	return in.Wanted()
}

// unwanted is the open channel of Wanted of a nil lease.
var unwanted = make(chan struct{})

// WithWanted has another process that waits for the lock send a message, so that [Lease.Wanted] is closed within a round trip. The
// message costs the waiter nothing, and the holder a pub/sub connection while it has such a lock. If a message is lost, the next request
// of the waiter sends another one, and the holder asks once a second as without this option.
//
// A TryLock sends no message. Redisson and older versions of Holdfast wait without one; older versions whose TryLock meets such a
// holder ask it, and learn that the lock is in use. Callers with and without the option do not pass a lock on to each other inside the
// process. A [Semaphore] has no use for the option: its permits do not say whom to tell. The default is off.
func WithWanted() LockOption {
	return lockOption(func(c *lockConfig) { c.terms.Wanted = true })
}
