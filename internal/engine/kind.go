package engine

import (
	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Kind is which lock, and which side of it, a caller wants or holds.
type Kind uint8

const (
	MutexKind Kind = iota
	FairKind
	WriteKind // of families: both sides of a read-write lock
	ReadKind
	MultiKind // several locks; of leases and telemetry only
	RedlockKind
)

// families is how many kinds have entries of their own: those up to WriteKind.
const families = WriteKind + 1

func (k Kind) String() string {
	return [...]string{"mutex", "fair", "write", "read", "multi", "redlock"}[k]
}

// rw reports whether k is a side of a read-write lock.
func (k Kind) rw() bool { return k == WriteKind || k == ReadKind }

func (k Kind) acquireScript() *command.Script {
	if k.rw() {
		return protocol.RWAcquire
	}
	return protocol.LockAcquire
}

func (k Kind) renewScript() *command.Script {
	if k == ReadKind {
		return protocol.RenewRead
	}
	return protocol.Renew
}

func (k Kind) releaseScript() *command.Script {
	if k.rw() {
		return protocol.RWRelease
	}
	return protocol.LockRelease
}
