package wire

// Keys holds the names that scripts and subscriptions of one lock use, boxed as the
// argument list of a command wants them: they are built once per handle, so that a
// lock operation allocates none of them.
type Keys struct {
	Lock       any // the lock's own key: a hash, owner id -> hold count
	Tombstones any // ours: owner ids whose late acquire must be refused
	Channel    any // where releases of the lock are announced
	Token      any // fencing counter, shared with Redisson's fenced lock; nil without fencing
}

// NewKeys derives the keys of name, which CheckName must have accepted.
func NewKeys(name string, fencing bool) *Keys {
	k := &Keys{
		Lock:       name,
		Tombstones: prefixed(tombstonePrefix, name),
		Channel:    prefixed(lockChannelPrefix, name),
	}
	if fencing {
		k.Token = prefixed(lockTokenPrefix, name)
	}
	return k
}

// InspectKeys names the keys that the script inspect takes, for a lock of any kind.
func InspectKeys(name string) []any {
	return []any{name, prefixed(lockTokenPrefix, name), prefixed(lockQueuePrefix, name)}
}

// ForceReleaseKeys names the keys that the script force_release takes.
func ForceReleaseKeys(name string) []any {
	return []any{
		name,
		prefixed(lockChannelPrefix, name),
		prefixed(rwChannelPrefix, name),
		prefixed(lockQueuePrefix, name),
	}
}
