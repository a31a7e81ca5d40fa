// Package wire builds and parses every string that Holdfast shares with
// Redisson: keys, channels, owner ids and messages.
//
// It is pure: no I/O, no clock, no state. The rules are Redisson's (helper
// methods prefixName and suffixName of its RedissonObject) and are pinned by
// tests, because a Java process must compute the same names.
package wire

import (
	"errors"
	"fmt"
	"strings"
)

// maxNameLen bounds a lock name in bytes. A name travels about four times in every
// script call and once in every message, and merged calls carry many names.
const maxNameLen = 1 << 10

// Prefixes of the keys that Redisson and Holdfast derive from a lock name.
const (
	lockChannelPrefix = "redisson_lock__channel"
	lockQueuePrefix   = "redisson_lock_queue"
	lockTimeoutPrefix = "redisson_lock_timeout"
	lockTokenPrefix   = "redisson_lock_token"
	unlockLatchPrefix = "redisson_unlock_latch"
	rwChannelPrefix   = "redisson_rwlock"
	rwQueuePrefix     = "holdfast_rw_queue"
	rwTimeoutPrefix   = "holdfast_rw_timeout"
	permitChannel     = "redisson_sc"
	permitQueue       = "holdfast_permit_queue"
	permitDeadlines   = "holdfast_permit_timeout"
	permitSuffix      = ":timeout"
	tombstonePrefix   = "holdfast_tombstones"
	leaderPrefix      = "holdfast_leader"
	readTimeoutInfix  = ":rwlock_timeout:"
	reservedOurs      = "holdfast_"
)

// reserved lists the prefixes of derived keys: a lock of such a name would share
// a key with another lock's internals.
var reserved = [...]string{lockQueuePrefix, lockTimeoutPrefix, lockTokenPrefix, unlockLatchPrefix}

// Errors of CheckName. They say what is wrong; the caller adds its own sentinel.
var (
	errEmpty    = errors.New("the name is empty")
	errSlot     = errors.New("the name has unbalanced or empty braces; use at most one non-empty {tag}")
	errWhole    = errors.New("the name must not be a single {tag}: it would share its queue with the lock named \"tag\"")
	errReserved = errors.New("the name begins with " + reservedOurs + ", or is that of a key derived from another lock's name")
)

// tooLong is the length of a name that is longer than maxNameLen.
type tooLong int

func (n tooLong) Error() string {
	return fmt.Sprintf("the name has %d bytes, and may have %d: use a shorter one, such as a digest", int(n), maxNameLen)
}

// Quote makes a name fit for a message: printable and not endless.
func Quote(name string) string {
	const most = 64
	if len(name) > most {
		return fmt.Sprintf("%q…", name[:most])
	}
	return fmt.Sprintf("%q", name)
}

// CheckLength reports that name, before or after any name mapper, is too long; nil if it is not.
func CheckLength(name string) error {
	if len(name) > maxNameLen {
		return tooLong(len(name))
	}
	return nil
}

// CheckName reports why name, after any name mapper, cannot be a lock's name; nil
// if it can.
//
// Redisson derives p:{name} where name has no "{" and p:name where it has one.
// Both fall into the slot of name itself exactly if name has no brace at all or
// its first "{" opens a non-empty tag; every other name is CROSSSLOT in a cluster,
// for Redisson as well, and is refused everywhere, so that data can move to a
// cluster later.
//
// Of "x" and "{x}", which Redisson derives the same from, the second is refused: they would stand
// in one queue, and a release of one would grant the other.
func CheckName(name string) error {
	switch {
	case name == "":
		return errEmpty
	case len(name) > maxNameLen:
		return tooLong(len(name))
	case !staysInSlot(name):
		return errSlot
	case isWholeTag(name):
		return errWhole
	case isReserved(name):
		return errReserved
	}
	return nil
}

// staysInSlot reports whether the keys derived from name hash as name does.
func staysInSlot(name string) bool {
	open := strings.IndexByte(name, '{')
	if open < 0 {
		return strings.IndexByte(name, '}') < 0
	}
	return strings.IndexByte(name[open+1:], '}') > 0
}

// isWholeTag reports whether name is another one in braces.
func isWholeTag(name string) bool {
	return name[0] == '{' && strings.IndexByte(name, '}') == len(name)-1
}

func isReserved(name string) bool {
	for _, p := range reserved {
		if strings.HasPrefix(name, p) && strings.HasPrefix(name[len(p):], ":") {
			return true
		}
	}
	if strings.HasPrefix(name, reservedOurs) {
		return true
	}
	if strings.HasSuffix(name, permitSuffix) && strings.IndexByte(name, '{') >= 0 {
		return true // the permits of a semaphore
	}
	// <name>:<owner>:rwlock_timeout:<n>, the deadline of one read hold.
	before := len(name)
	for before > 0 && '0' <= name[before-1] && name[before-1] <= '9' {
		before--
	}
	return before < len(name) && before > len(readTimeoutInfix) && strings.HasSuffix(name[:before], readTimeoutInfix)
}

// prefixed is Redisson's prefixName: prefix and name, sharing the name's slot.
func prefixed(prefix, name string) string {
	before, after := infixes(name)
	return prefix + before + name + after
}

// infixes returns what stands before and after name where it follows a prefix.
func infixes(name string) (before, after string) {
	if strings.IndexByte(name, '{') >= 0 {
		return ":", ""
	}
	return ":{", "}"
}
