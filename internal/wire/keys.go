package wire

import "strings"

// Keys holds the names that scripts and subscriptions of one lock use, boxed as the
// argument list of a command wants them: they are built once per handle, so that a
// lock operation allocates none of them.
type Keys struct {
	Lock       any // the lock's own key: a hash, owner id -> hold count
	Queue      any // list of waiters
	Deadlines  any // the zset that belongs to the queue: until when each place is kept
	Tombstones any // Holdfast's own: owner ids whose late acquire must be refused
	Token      any // fencing counter, shared with Redisson's fenced lock; nil without fencing
	Channel    any // no key: where releases of the lock are announced
}

// NewKeys derives the keys of a mutex or fair lock of that name, which CheckName must
// have accepted.
func NewKeys(name string, fencing bool) *Keys {
	return newKeys(name, lockQueuePrefix, lockTimeoutPrefix, lockChannelPrefix, fencing)
}

// NewRWKeys derives those of a read-write lock.
func NewRWKeys(name string, fencing bool) *Keys {
	return newKeys(name, rwQueuePrefix, rwTimeoutPrefix, rwChannelPrefix, fencing)
}

// newKeys writes the derived names into one string and cuts it: each name alone would be an allocation.
func newKeys(name, queue, deadlines, channel string, fencing bool) *Keys {
	prefixes := []string{queue, deadlines, tombstonePrefix, channel, lockTokenPrefix}
	if !fencing {
		prefixes = prefixes[:4]
	}
	before, after := infixes(name)
	around := len(before) + len(name) + len(after)
	length := len(prefixes) * around
	for _, p := range prefixes {
		length += len(p)
	}
	var all strings.Builder
	all.Grow(length)
	for _, p := range prefixes {
		all.WriteString(p)
		all.WriteString(before)
		all.WriteString(name)
		all.WriteString(after)
	}
	rest := all.String()
	cut := func(prefix string) any {
		key := rest[:len(prefix)+around]
		rest = rest[len(key):]
		return key
	}
	k := &Keys{Lock: name, Queue: cut(queue), Deadlines: cut(deadlines), Tombstones: cut(tombstonePrefix), Channel: cut(channel)}
	if fencing {
		k.Token = cut(lockTokenPrefix)
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
	return []any{
		name,
		prefixed(lockTokenPrefix, name),
		prefixed(lockQueuePrefix, name),
		prefixed(lockTimeoutPrefix, name),
		prefixed(rwQueuePrefix, name),
		prefixed(rwTimeoutPrefix, name),
	}
}

// ForceReleaseKeys names the keys that the script force_release takes.
func ForceReleaseKeys(name string) []any {
	return []any{
		name,
		prefixed(lockQueuePrefix, name),
		prefixed(lockTimeoutPrefix, name),
		prefixed(rwQueuePrefix, name),
		prefixed(rwTimeoutPrefix, name),
	}
}

// Channels names the channels on which releases of a lock of that name are announced: of a mutex or fair lock, and of
// a read-write lock.
func Channels(name string) (lock, rw string) {
	return prefixed(lockChannelPrefix, name), prefixed(rwChannelPrefix, name)
}
