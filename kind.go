package holdfast

import (
	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// kind is which lock, and which side of it, somebody asks for or holds.
type kind uint8

const (
	mutexKind kind = iota
	fairKind
	writeKind // of families: both sides of a read-write lock
	readKind
	multiKind // several locks; of leases and telemetry only
	redlockKind
)

// families is how many kinds have entries of their own: those up to writeKind.
const families = writeKind + 1

func (k kind) String() string {
	return [...]string{"mutex", "fair", "write", "read", "multi", "redlock"}[k]
}

// rw reports whether k is a side of a read-write lock.
func (k kind) rw() bool { return k == writeKind || k == readKind }

func (k kind) acquireScript() *command.Script {
	if k.rw() {
		return protocol.RWAcquire
	}
	return protocol.LockAcquire
}

func (k kind) releaseScript() *command.Script {
	if k.rw() {
		return protocol.RWRelease
	}
	return protocol.LockRelease
}
