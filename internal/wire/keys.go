package wire

import "strings"

// Keys holds the names that scripts of one lock use, boxed as the
// argument list of a command wants them: they are built once per handle, so that a
// lock operation allocates none of them. A process has them for as long as it holds the lock. So what few requests name is not here,
// but derived for each.
type Keys struct {
	Lock       any // the lock's own key: a hash, owner id -> hold count
	Queue      any // list of waiters
	Deadlines  any // the zset that belongs to the queue: until when each place is kept
	Tombstones any // Holdfast's own: owner ids whose late acquire must be refused
}

// Token names the fencing counter, shared with Redisson's fenced lock.
func (k *Keys) Token() string { return lockTokenPrefix + k.around() }

// Channel names no key: it is where releases of the lock are announced.
func (k *Keys) Channel() string {
	switch queue := k.Queue.(string); {
	case strings.HasPrefix(queue, rwQueuePrefix):
		return rwChannelPrefix + k.around()
	case strings.HasPrefix(queue, permitQueue):
		return permitChannel + k.around()
	}
	return lockChannelPrefix + k.around()
}

// around is what follows the prefix in each derived name.
func (k *Keys) around() string { return k.Tombstones.(string)[len(tombstonePrefix):] }

// NewKeys derives the keys of a mutex or fair lock of that name, which CheckName must
// have accepted.
func NewKeys(name string) *Keys { return newKeys(name, lockQueuePrefix, lockTimeoutPrefix) }

// NewRWKeys derives those of a read-write lock.
func NewRWKeys(name string) *Keys { return newKeys(name, rwQueuePrefix, rwTimeoutPrefix) }

// NewSemaphoreKeys derives those of a semaphore.
func NewSemaphoreKeys(name string) *Keys { return newKeys(name, permitQueue, permitDeadlines) }

// newKeys writes the derived names into one string and cuts it: each name alone would be an allocation.
func newKeys(name, queue, deadlines string) *Keys {
	before, after := infixes(name)
	around := len(before) + len(name) + len(after)
	var all strings.Builder
	all.Grow(len(queue) + len(deadlines) + len(tombstonePrefix) + 3*around)
	for _, prefix := range [...]string{queue, deadlines, tombstonePrefix} {
		all.WriteString(prefix)
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
	return &Keys{Lock: name, Queue: cut(queue), Deadlines: cut(deadlines), Tombstones: cut(tombstonePrefix)}
}

// ReadRight names the key that the right of a reader ends with: of its first hold,
// since re-entry is not counted in Redis.
func ReadRight(name, owner string) string {
	return suffixed(name) + ":" + owner + readTimeoutInfix + "1"
}

// PermitSet names the key that has the permits of a semaphore that are held.
func PermitSet(name string) string { return suffixed(name) + permitSuffix }

// suffixed is Redisson's suffixName, without the suffix.
func suffixed(name string) string {
	if strings.IndexByte(name, '{') < 0 {
		return "{" + name + "}"
	}
	return name
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
		PermitSet(name),
		prefixed(permitQueue, name),
		prefixed(permitDeadlines, name),
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
		PermitSet(name),
		prefixed(permitQueue, name),
	}
}

// ElectionKeys names the keys that the script leader takes, for the election whose lock has that name: the lock, what its leader says of
// itself, and the fencing counter. The script proclaim takes the first two.
func ElectionKeys(name string) []any {
	return []any{name, LeaderChannel(name), prefixed(lockTokenPrefix, name)}
}

// LeaderChannel names the channel on which each change of a leader, or of what it says, is told.
func LeaderChannel(name string) string { return prefixed(leaderPrefix, name) }

// SemaphoreKeys names the keys that the script permit_set takes.
func SemaphoreKeys(name string) []any {
	return []any{name, prefixed(permitQueue, name), prefixed(permitDeadlines, name), PermitSet(name)}
}

// Channels names the channels on which releases of a lock of that name are announced: of a mutex or fair lock, and of
// a read-write lock.
func Channels(name string) (lock, rw string) {
	return prefixed(lockChannelPrefix, name), prefixed(rwChannelPrefix, name)
}

// PermitChannel names the channel on which it is announced how many permits of a semaphore are available.
func PermitChannel(name string) string { return prefixed(permitChannel, name) }

// Slot is Redis Cluster's slot of a key, after the cluster specification: CRC16 (XMODEM)
// of the first non-empty {tag}, else of the whole key, modulo 16384.
func Slot(key string) uint16 {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if n := strings.IndexByte(key[open+1:], '}'); n > 0 {
			key = key[open+1 : open+1+n]
		}
	}
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % 16384
}
