package wire

// Keys holds the names that scripts and subscriptions of one lock use, each both
// as a string and as the boxed value that a command's argument list wants: they
// are built once per handle, so that a lock operation allocates none of them.
type Keys struct {
	Name string // the lock's own key: a hash, owner id -> hold count

	Lock       any // Name, boxed
	Token      any // fencing counter, shared with Redisson's fenced lock
	Tombstones any // ours: owner ids whose late acquire must be refused

	Channel    string // where releases of the lock are announced
	ChannelArg any    // Channel, boxed
}

// NewKeys derives the keys of name, which CheckName must have accepted.
func NewKeys(name string) *Keys {
	channel := prefixed(lockChannelPrefix, name)
	return &Keys{
		Name:       name,
		Lock:       name,
		Token:      prefixed(lockTokenPrefix, name),
		Tombstones: prefixed(tombstonePrefix, name),
		Channel:    channel,
		ChannelArg: channel,
	}
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
