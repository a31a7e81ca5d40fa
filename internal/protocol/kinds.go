package protocol

import (
	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
)

// kind is what the requests about holds of a kind of lock, or a side of one, are made of.
type kind struct {
	acquire, renew, release, stay *command.Script

	writes bool // the owner ids of its holds say that they are writers'
	right  bool // a hold ends with a key of its own, its right
}

var kinds = [...]kind{
	lock.MutexKind: {acquire: LockAcquire, renew: Renew, release: LockRelease, stay: LockStay},
	lock.FairKind:  {acquire: LockAcquire, renew: Renew, release: LockRelease, stay: LockStay},
	lock.WriteKind: {acquire: RWAcquire, renew: Renew, release: RWRelease, stay: RWStay, writes: true},
	lock.ReadKind:  {acquire: RWAcquire, renew: RenewRead, release: RWRelease, stay: RWStay, right: true},
}

// kindOf is the kind of a hold.
func kindOf(h *lock.Hold) *kind { return &kinds[h.Kind] }

// RenewScript renews holds of a kind.
func RenewScript(k lock.Kind) *command.Script { return kinds[k].renew }
