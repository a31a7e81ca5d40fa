package holdfast

import "context"

// otherOwner is what the script force_release returns if the owner does not hold the lock.
const otherOwner = -2

// ForceUnlockOf frees the named lock if owner holds it, and reports whether it did. owner is an owner
// id as [Manager.Inspect] returns it. A lock that other readers hold as well is freed for all of
// them.
//
// Use it instead of [Manager.ForceUnlock] to free what was looked at before: another owner that has
// taken the lock meanwhile keeps it. Everything else is as for ForceUnlock.
func (m *Manager) ForceUnlockOf(ctx context.Context, name, owner string) (bool, error) {
	if owner == "mode" { // a field of read-write locks that is no owner
		owner = ""
	}
	return m.forceUnlock(ctx, "ForceUnlockOf", name, owner)
}
