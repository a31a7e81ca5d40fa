package holdfast

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lock"
)

// Multi is several locks taken as one, all or none. They may be of any kind, and of one or several
// managers. A Multi shares nothing with Redisson's MultiLock but the locks themselves.
//
// The locks are taken in the same order everywhere, that of their names, so two Multis never
// deadlock. Locks of the same name on different servers are taken in the order in which NewMulti
// was given them, so that order must be the same everywhere. A caller that holds a lock and takes
// another one by itself is outside the order, and can deadlock.
//
// Mutexes and fair locks of one Manager that follow each other in that order are taken by one
// script, in one round trip, if they are all free (in a cluster, those that share a slot).
// Otherwise, with [WithFencing] and for read-write locks, they are taken one after the other, while
// the earlier ones are held.
type Multi struct {
	locks []*handle // in that order
	whole handle    // for names and telemetry: the locks together
}

// NewMulti returns one lock of all locks. A lock is a *[Mutex], a *[FairMutex], an *[RWMutex], the
// result of [RWMutex.RLocker] or of [Semaphore.Locker], or another *Multi, whose locks are taken.
//
// It returns [ErrInvalidOption] if no locks are given, if an argument is of another type, or if two
// locks have the same name. The first call returns an error if the name or an option of a lock is
// bad.
func NewMulti(locks ...Locker) (*Multi, error) {
	all, err := handlesOf("NewMulti", locks)
	if err != nil {
		return nil, err
	}
	seen := make(map[lockID]bool)
	for _, h := range all {
		if h.err != nil {
			continue
		}
		id := lockID{h.m, h.lock.Mapped}
		if seen[id] {
			return nil, &OptionError{"NewMulti", h.lock.Name, "the lock is named twice, and would wait for itself"}
		}
		seen[id] = true
	}
	slices.SortStableFunc(all, func(a, b *handle) int { return cmp.Compare(a.order(), b.order()) })
	return &Multi{all, wholeOf(lock.MultiKind, strings.Join(namesOf(all), "+"), all)}, nil
}

// wholeOf describes locks that are taken together. Its error is the first error of a part, and its wait the shortest.
func wholeOf(k lock.Kind, name string, locks []*handle) handle {
	whole := handle{m: locks[0].m, lock: locks[0].lock.Whole(k, name)}
	for _, h := range locks {
		if whole.err == nil {
			whole.err = h.err
		}
		if h.wait != 0 && (whole.wait == 0 || h.wait < whole.wait) {
			whole.wait = h.wait
		}
	}
	return whole
}

// locksOf returns the locks as the engine knows them.
func locksOf(all []*handle) []*engine.Lock {
	locks := make([]*engine.Lock, len(all))
	for i, h := range all {
		locks[i] = &h.lock
	}
	return locks
}

func namesOf(locks []*handle) []string {
	names := make([]string, len(locks))
	for i, h := range locks {
		names[i] = h.lock.Name
	}
	return names
}

// lockID is a lock, of whatever kind.
type lockID struct {
	m    *Manager
	name string // after the name mapper
}

// order is what locks are sorted by.
func (h *handle) order() string {
	if h.err != nil {
		return h.lock.Name
	}
	return h.lock.Mapped
}

// handlesOf unpacks locks.
func handlesOf(caller string, locks []Locker) (all []*handle, err error) {
	if len(locks) == 0 {
		return nil, &OptionError{caller, nil, caller + ": no locks given"}
	}
	for i, l := range locks {
		var h *handle
		switch l := l.(type) {
		case *Mutex:
			if l != nil {
				h = &l.handle
			}
		case *FairMutex:
			if l != nil {
				h = &l.handle
			}
		case *RWMutex:
			if l != nil {
				h = &l.handle
			}
		case readSide:
			if l.l != nil {
				h = &l.l.read
			}
		case permits:
			if l.s != nil && caller == "NewMulti" {
				if h, err = l.s.side(caller, l.n); err != nil {
					return nil, err
				}
			}
		case *Multi:
			if l != nil && len(l.locks) > 0 && caller == "NewMulti" {
				all = append(all, l.locks...)
				continue
			}
		}
		if v := reflect.ValueOf(l); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			return nil, &OptionError{caller, nil, fmt.Sprintf("%s: lock %d is nil", caller, i+1)}
		}
		if h == nil || h.zero() { // a zero value: no Manager made it
			return nil, &OptionError{caller, fmt.Sprintf("%T", l), fmt.Sprintf("lock %d is of a type that it does not take", i+1)}
		}
		all = append(all, h)
	}
	return all, nil
}

// Lock takes all locks. It waits for each in turn, and holds the earlier ones meanwhile. If one of
// those ends, Lock begins again. ctx bounds the whole wait. On error no lock is held, and those
// that were taken are being released. The error is that of the lock that could not be taken, see
// [Mutex.Lock].
//
// The lease ends with the first of the locks that is lost, and the others are then released. Its
// Deadline is the earliest Deadline of the locks, and Extend prolongs all of them.
func (l *Multi) Lock(ctx context.Context) (*Lease, error) {
	return l.together().takeWhole(ctx, "Lock", false, func(ctx, trace context.Context) (*engine.Lease, error) {
		return engine.TakeAll(ctx, &l.whole.lock, locksOf(l.locks), false, trace)
	})
}

// TryLock takes all locks without waiting for their owners. It returns [ErrNotAcquired] if another
// owner holds one of them. Locks that one script can take share a request, and each of the others
// has its own. Each request may take as long as [Mutex.TryLock], and none goes on beyond ctx.
// Otherwise TryLock is like [Multi.Lock].
func (l *Multi) TryLock(ctx context.Context) (*Lease, error) {
	return l.together().takeWhole(ctx, "TryLock", true, func(ctx, trace context.Context) (*engine.Lease, error) {
		return engine.TakeAll(ctx, &l.whole.lock, locksOf(l.locks), true, trace)
	})
}

// together returns the handle of all locks; nil if l is.
func (l *Multi) together() *handle {
	if l == nil {
		return nil
	}
	return &l.whole
}
