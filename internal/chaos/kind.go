package chaos

import (
	"slices"

	"github.com/holdfast-go/holdfast"
)

// lockFunc makes a handle of a lock.
type lockFunc func(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker

// Kind is a kind of lock in the workload.
type Kind struct {
	Name      string
	Fenced    bool     // its tokens are judged
	Exclusive lockFunc // the only side, or the write side
	Shared    lockFunc // the read side; nil: there is none
	Permits   int      // of a semaphore: how many there are; 0: it is none. Exclusive takes one
}

func mutex(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker {
	return m.Mutex(name, opts...)
}

func fair(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker {
	return m.FairMutex(name, append(slices.Clone(opts), holdfast.WithLinger(0))...) // a fair lock is not kept
}

func write(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker {
	return m.RWMutex(name, opts...)
}

func read(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker {
	return m.RWMutex(name, opts...).RLocker()
}

// permits takes so many permits of a semaphore that is not in use for long: Redis forgets it. A semaphore is not kept by its process.
func permits(n int) lockFunc {
	return func(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker {
		return m.Semaphore(name, allPermits, append([]holdfast.LockOption{holdfast.WithIdleTTL(slowTTL), holdfast.WithLinger(0)}, opts...)...).Locker(n)
	}
}

// How many permits a semaphore has, and how many a worker takes at most.
const (
	allPermits  = 3
	mostPermits = 2
)

func fenced(f lockFunc) lockFunc {
	return func(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker {
		return f(m, name, append(slices.Clone(opts), holdfast.WithFencing())...)
	}
}

// slow makes locks of a longer lease.
func slow(f lockFunc) lockFunc {
	return func(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker {
		return f(m, name, append(slices.Clone(opts), holdfast.WithLease(slowTTL))...)
	}
}

// Kinds are the kinds that run.
var Kinds = []Kind{
	{Name: "mutex", Exclusive: mutex},
	{Name: "fenced", Fenced: true, Exclusive: fenced(mutex)},
	{Name: "fair", Fenced: true, Exclusive: fenced(fair)},
	{Name: "rw", Fenced: true, Exclusive: fenced(write), Shared: fenced(read)},
	{Name: "permits", Exclusive: permits(1), Permits: allPermits},
}

// Names of locks. Each kind has a busy lock, on which everything is tried; a quiet
// one, whose callers all wait for each other and show how fast they are woken; and a slow one, which
// is held until it has been renewed, and has a longer lease.
func (k *Kind) busy() string  { return "chaos:" + k.Name }
func (k *Kind) quiet() string { return "chaos:" + k.Name + ":wake" }
func (k *Kind) slow() string  { return "chaos:" + k.Name + ":slow" }

func (k *Kind) names() []string { return []string{k.busy(), k.quiet(), k.slow()} }

// kindOf finds the kind of a lock name; nil for the private locks of a process.
func kindOf(name string) *Kind {
	for i := range Kinds {
		if k := &Kinds[i]; slices.Contains(k.names(), name) {
			return k
		}
	}
	return nil
}

func lockNames() (names []string) {
	for i := range Kinds {
		names = append(names, Kinds[i].names()...)
	}
	return names
}
