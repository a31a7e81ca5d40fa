package lock

// Kind is which lock, and which side of it, a caller wants or holds. What makes it is in its rules.
type Kind uint8

const (
	MutexKind Kind = iota
	FairKind
	WriteKind // of families: both sides of a read-write lock
	ReadKind
	MultiKind // several locks; of leases and telemetry only
	RedlockKind
)

// Families is how many kinds have entries of their own: those up to WriteKind.
const Families = WriteKind + 1

func (k Kind) String() string {
	return [...]string{"mutex", "fair", "write", "read", "multi", "redlock"}[k]
}

// Mode is how a lease came about, for traces.
type Mode uint8

const (
	AtOnce    Mode = iota // by the first request to Redis after the call
	AfterWait             // by a later one
	ByHandoff             // by the caller before, or beside other readers, in this process
	ByServer              // by Redis, with the release of another owner
	Reentry               // its context carried a lease of the lock

	Modes = iota
)

func (g Mode) String() string {
	return [...]string{"fast", "wait", "handoff", "grant", "reentry"}[g]
}
