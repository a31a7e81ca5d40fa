package engine

import (
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// What makes a kind of lock is in the rules of internal/lock. This is what the names of its locks mean in Redis.

// family is the kind of lock that an entry is of: both sides of a read-write lock are one.
type family struct {
	keys     func(name string) *wire.Keys
	twin     Kind // whose locks have the same key in Redis, and other entries; itself: there is none
	together bool // one script can take several of them
}

var families = [lock.Families]family{
	MutexKind: {keys: wire.NewKeys, twin: FairKind, together: true},
	FairKind:  {keys: wire.NewKeys, twin: MutexKind, together: true},
	WriteKind: {keys: wire.NewRWKeys, twin: WriteKind},
}
