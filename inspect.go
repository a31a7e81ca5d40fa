package holdfast

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/validity"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Kind says what kind of lock a name is. [Manager.Inspect] tells it from the value of the lock's key,
// and [Manager.Locks] from the calls of this process.
type Kind string

const (
	KindFree      Kind = "free"      // nothing: the lock is free
	KindMutex     Kind = "mutex"     // a Mutex or FairMutex, or Redisson's RLock, RFencedLock or RFairLock
	KindFair      Kind = "fair"      // a FairMutex; only from Locks: in Redis it looks like a Mutex
	KindRead      Kind = "read"      // a read-write lock held by readers
	KindWrite     Kind = "write"     // a read-write lock held by a writer
	KindSemaphore Kind = "semaphore" // a Semaphore, or Redisson's RPermitExpirableSemaphore
	KindOther     Kind = "other"     // no lock
)

// Info is what Redis knows about a lock at one moment.
//
// A process stands in the queue of a Mutex or an RWMutex once, however many of its callers wait.
// The callers of a FairMutex stand there one by one. Waiters of Redisson stand there only if they
// use its fair lock.
//
// Waiting callers in the process of a holder have no place in the queue. With [WithIdentity] that
// process says how many there are: [Holder.Callers].
//
// A reader that has died stays recorded in the lock until another reader leaves or TTL is over. If
// no other reader is left, Held is false and Kind is KindRead: readers are admitted, and writers
// wait until TTL is over.
//
// A place without a time counts as a waiter. In a queue of more than 2,000 places, Inspect does not
// look up the time of each place, and takes the number of times that are over for Overdue. A time
// that was left behind without its place then makes Overdue too large, and Waiters too small, by
// one.
type Info struct {
	Name    string // as given
	Kind    Kind
	Held    bool          // an owner holds it; readers whose right has ended do not count
	Holders []Holder      // those whose right has not ended; permits by their TTLs, the shortest first
	TTL     time.Duration // until the lock's key expires; 0 if there is none, time.Duration(-1) if it has no TTL
	Waiters int           // places in the queue in Redis: one per waiting process (FairMutex: per caller)
	Queue   []Waiter      // the first 100 places, the next one first, including those whose time is over
	Token   uint64        // the last fencing token granted or reserved; 0 if there was none

	Permits   int // of a semaphore: how many permits it has, including those that have ended and were not collected yet
	Available int // of these, how many no one holds; below 0 after a cut, until enough have come back

	Ended   int         // readers, or permits, that are still recorded, though their right has ended; not among Holders
	More    int         // holders not shown: Holders has at most 1,000, of about 2,000 that are looked at
	Overdue int         // places in the queue whose time is over, not among Waiters
	Broken  []BrokenKey // keys beside the lock's own that hold something else: their fields here are 0
}

// BrokenKey is a key that belongs to a lock and holds something that it should not. Holdfast does
// not repair it. If no other program needs the key, delete it.
type BrokenKey struct {
	Key   string // its name in Redis
	Holds string // its type, such as "list"; for a fencing counter, the fault of its text
}

// Holder is one owner of a lock.
type Holder struct {
	Owner    string // owner id: of a manager of Holdfast or a client of Redisson; of a permit its id, 32 hexadecimal digits
	Holds    int    // hold count; Holdfast counts re-entry in the process and shows 1
	Write    bool   // it holds the write side
	Holdfast bool   // the owner id is Holdfast's
	Lingers  bool   // its process may keep the lock after Unlock, by WithLinger, until another process wants it
	Idle     bool   // the Manager of Inspect holds the lock so, and no caller has a lease
	Value    string // of WithValue; empty: none
	Detached bool   // no process has the lock: the process of Owner has left it to a ticket, see [Lease.Detach]

	TTL time.Duration // until its right ends (a reader: the longest of its rights); time.Duration(-1): it has no TTL

	// Identity is what its process says of itself, and Callers how many callers of that process wait for
	// the lock, by its own account. A process gives it every five seconds if one of its callers has waited
	// for a second. They are empty unless the process and the Manager of Inspect have [WithIdentity].
	Identity     *Identity
	Callers      int
	CallersSince time.Time // when the oldest of them came, by that process's clock
}

// Waiter is a place in the queue of a lock in Redis.
type Waiter struct {
	Owner    string // owner id: of a manager of Holdfast or a client of Redisson
	Holdfast bool   // the owner id is Holdfast's

	// Identity is what its process says of itself, and Callers how many callers of that process wait for
	// the lock, by its own account: see [Holder].
	Identity     *Identity
	Callers      int
	CallersSince time.Time // when the oldest of them came, by that process's clock
}

// Inspect returns what Redis knows about the named lock, of any kind, without changing anything.
// The answer may be out of date when it arrives: it is for people and dashboards, never to decide
// whether to act.
//
// Inspect blocks for at most a second (twelve round trips where Redis is far away, five seconds if
// Redis has not answered this Manager yet) and until ctx is done, and with [WithIdentity] for as long
// again. It returns [ErrInvalidName], [ErrUnavailable] or [ErrClosed].
func (m *Manager) Inspect(ctx context.Context, name string) (Info, error) {
	info, err := m.inspect(ctx, "Inspect", name)
	if err == nil && m.engine.Identity != nil {
		m.identify(ctx, name, &info)
	}
	return info, err
}

// inspect is Inspect for call, without the identities.
func (m *Manager) inspect(ctx context.Context, call, name string) (Info, error) {
	if err := m.check(ctx, call); err != nil {
		return Info{}, err
	}
	mapped, err := m.keyOf(name)
	if err != nil {
		return Info{}, err
	}
	keys := wire.InspectKeys(mapped)
	value, err := m.engine.Ask(ctx, name, engine.Repeatable, protocol.Inspect, protocol.Inspect.Args(len(keys), keys...))
	if err != nil {
		return Info{}, err
	}
	info, ok := parseInfo(value)
	if !ok {
		return Info{}, engine.NewError(ErrUnavailable, name, protocol.Unexpected(value))
	}
	for i, h := range info.Holders {
		info.Holders[i].Idle = h.Lingers && m.engine.IsIdle(mapped, h.Owner)
	}
	info.Name = name
	return info, nil
}

// parseInfo reads the reply of inspect.lua.
func parseInfo(value any) (Info, bool) {
	list, ok := value.([]any)
	if !ok || len(list) != 12 {
		return Info{}, false
	}
	kind, ok := list[0].(string)
	var n [8]int64
	for i, at := range [...]int{1, 2, 3, 4, 5, 6, 10, 11} {
		number, isNumber := list[at].(int64)
		n[i], ok = number, ok && isNumber
	}
	holders, ok1 := list[7].([]any)
	broken, ok2 := list[8].([]any)
	queue, ok3 := list[9].([]any)
	if !ok || !ok1 || !ok2 || !ok3 || len(holders)%3 != 0 || len(broken)%2 != 0 {
		return Info{}, false
	}
	info := Info{
		Kind: Kind(kind), Token: uint64(n[1]), Waiters: int(n[2]),
		Overdue: int(n[3]), Ended: int(n[4]), More: int(n[5]),
	}
	for at := range slices.Chunk(broken, 2) {
		key, ok1 := at[0].(string)
		holds, ok2 := at[1].(string)
		if !ok1 || !ok2 {
			return Info{}, false
		}
		info.Broken = append(info.Broken, BrokenKey{key, holds})
	}
	for _, id := range queue {
		owner, isText := id.(string)
		if !isText {
			return Info{}, false
		}
		info.Queue = append(info.Queue, Waiter{Owner: owner, Holdfast: wire.IsOurs(owner)})
	}
	if info.Kind == KindFree || info.Kind == KindOther {
		return info, true
	}
	info.TTL = timeLeft(n[0])
	if info.Kind == KindSemaphore {
		info.Permits, info.Available = int(n[6]), int(n[7])
	}
	for at := range slices.Chunk(holders, 3) {
		field, ok1 := at[0].(string)
		value, ok2 := at[1].(string)
		ttl, ok3 := at[2].(int64)
		if !ok1 || !ok2 || !ok3 {
			return Info{}, false
		}
		owner, write := strings.CutSuffix(field, ":write")
		holds, _ := strconv.Atoi(value)
		_, permit := wire.PermitOwner(owner)
		info.Holders = append(info.Holders, Holder{
			Owner: owner, Holds: holds, Write: write, Holdfast: wire.IsOurs(owner) || permit, Lingers: wire.Lingers(owner), Value: wire.ValueOf(owner), Detached: wire.IsDetached(owner), TTL: timeLeft(ttl),
		})
	}
	info.Held = len(info.Holders) > 0 || info.More > 0
	return info, true
}

// timeLeft is what PTTL said.
func timeLeft(ms int64) time.Duration {
	if ms < 0 {
		return -1
	}
	return validity.Duration(ms)
}

// ForceUnlock frees the named lock, of any kind and whichever owner holds it, and wakes its
// waiters. It reports whether there was anything to free. It is for operators: the code that held
// the lock may still be running.
//
// The holder learns of it from its next renewal, or with [WithFixedLease] from its Extend or
// Unlock. A holder in this process learns of it at once.
//
// ForceUnlock sends two requests: the first finds out whether Redis answers, the second frees the
// lock. The second is not repeated, since a copy could free the next owner's lock. Each blocks for
// at most as long as Inspect, and until ctx is done. ForceUnlock returns
//
//   - [ErrWrongKind] if the key holds something else, which is left alone.
//   - [ErrInvalidName] or [ErrClosed].
//   - [ErrUnavailable] if Redis did not answer: the lock may have been freed.
func (m *Manager) ForceUnlock(ctx context.Context, name string) (bool, error) {
	return m.forceUnlock(ctx, "ForceUnlock", name)
}

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

// forceUnlock frees the lock for call. If there is an owner, it must hold the lock.
func (m *Manager) forceUnlock(ctx context.Context, call, name string, owner ...any) (bool, error) {
	if err := m.check(ctx, call); err != nil {
		return false, err
	}
	mapped, err := m.keyOf(name)
	if err != nil {
		return false, err
	}
	// A copy could free the next owner's lock, so the request is not repeated. The question before it
	// finds out which connections are dead.
	if _, err := m.inspect(ctx, call, name); err != nil {
		return false, err
	}
	keys := wire.ForceReleaseKeys(mapped)
	lock, rw := wire.Channels(mapped)
	args := append(append(keys, m.engine.Process.Publish, lock, rw, wire.PermitChannel(mapped)), owner...)
	value, err := m.engine.Ask(ctx, name, engine.Unrepeatable, protocol.ForceRelease, protocol.ForceRelease.Args(len(keys), args...))
	if err != nil {
		return false, err
	}
	code, ok := value.(int64)
	switch {
	case !ok:
		return false, engine.NewError(ErrUnavailable, name, protocol.Unexpected(value))
	case code == protocol.ForceOtherOwner:
		return false, nil
	case code < 0:
		return false, engine.NewError(ErrWrongKind, name, fmt.Errorf("%s holds no lock", wire.Quote(mapped)))
	}
	if code == 1 {
		m.engine.CheckHolds(mapped)
	}
	return code == 1, nil
}
