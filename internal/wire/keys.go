package wire

import "strings"

// Keys holds the names that scripts and subscriptions of one lock use, boxed as the
// argument list of a command wants them: they are built once per handle, so that a
// lock operation allocates none of them.
type Keys struct {
	Lock       any // the lock's own key: a hash, owner id -> hold count
	Tombstones any // ours: owner ids whose late acquire must be refused
	Channel    any // where releases of the lock are announced
	Queue      any // list of waiters; the zset that belongs to it is derived by the scripts
	Token      any // fencing counter, shared with Redisson's fenced lock; nil without fencing
}

// Deadlines names the zset that belongs to the queue, as the scripts derive it.
func (k *Keys) Deadlines() string { return strings.Replace(k.Queue.(string), "_queue", "_timeout", 1) }

// NewKeys derives the keys of a mutex or fair lock of that name, which CheckName must
// have accepted.
func NewKeys(name string, fencing bool) *Keys {
	return newKeys(name, lockChannelPrefix, lockQueuePrefix, fencing)
}

// NewRWKeys derives those of a read-write lock.
func NewRWKeys(name string, fencing bool) *Keys {
	return newKeys(name, rwChannelPrefix, rwQueuePrefix, fencing)
}

func newKeys(name, channel, queue string, fencing bool) *Keys {
	k := &Keys{
		Lock:       name,
		Tombstones: prefixed(tombstonePrefix, name),
		Channel:    prefixed(channel, name),
		Queue:      prefixed(queue, name),
	}
	if fencing {
		k.Token = prefixed(lockTokenPrefix, name)
	}
	return k
}

// ReadRight names the key that the right of a reader ends with: of its first hold,
// since re-entry is not counted in Redis.
func ReadRight(name, owner string) string {
	if strings.IndexByte(name, '{') < 0 {
		name = "{" + name + "}"
	}
	return name + ":" + owner + readTimeoutInfix + "1"
}

// FairChannel names the channel on which Redisson tells one fair waiter that it is
// next.
func FairChannel(channel, owner string) string { return channel + ":" + owner }

// InspectKeys names the keys that the script inspect takes, for a lock of any kind.
func InspectKeys(name string) []any {
	return []any{name, prefixed(lockTokenPrefix, name), prefixed(lockQueuePrefix, name), prefixed(rwQueuePrefix, name)}
}

// ForceReleaseKeys names the keys that the script force_release takes.
func ForceReleaseKeys(name string) []any {
	return []any{
		name,
		prefixed(lockChannelPrefix, name),
		prefixed(rwChannelPrefix, name),
		prefixed(lockQueuePrefix, name),
		prefixed(rwQueuePrefix, name),
	}
}
