package holdfast_test

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

var mutexKind = locktest.Kind{
	Name: "mutex",
	Lock: func(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker {
		return m.Mutex(name, opts...)
	},
	Async: func(l holdfast.Locker, ctx context.Context) <-chan holdfast.Result {
		return l.(*holdfast.Mutex).LockAsync(ctx)
	},
}

var fairKind = locktest.Kind{
	Name:   "fair",
	Places: true,
	Lock: func(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker {
		return m.FairMutex(name, opts...)
	},
	Async: func(l holdfast.Locker, ctx context.Context) <-chan holdfast.Result {
		return l.(*holdfast.FairMutex).LockAsync(ctx)
	},
}

var writeKind = locktest.Kind{
	Name:  "write",
	Write: true,
	Lock: func(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker {
		return m.RWMutex(name, opts...)
	},
	Async: func(l holdfast.Locker, ctx context.Context) <-chan holdfast.Result {
		return l.(*holdfast.RWMutex).LockAsync(ctx)
	},
}

// semaphoreKind runs what is the same for permits: see internal/locktest/semaphore for the rest.
var semaphoreKind = locktest.Kind{
	Name:    "semaphore",
	Permits: true,
	Lock: func(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker {
		return m.Semaphore(name, locktest.Permits, opts...).Locker(locktest.Permits)
	},
}

// readKind is not exclusive: helper processes hold it, the suite does not run on it.
var readKind = locktest.Kind{
	Name: "read",
	Lock: func(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker {
		return m.RWMutex(name, opts...).RLocker()
	},
}

func TestMain(m *testing.M) {
	roles := locktest.Roles(mutexKind, fairKind, writeKind, readKind)
	locktest.Main(m, roles, func(tb testing.TB) { addr = locktest.AnyServer(tb) })
}

// Every kind on real servers. docs/internals/SCENARIOS.md has what runs where.
func TestMutex(t *testing.T)         { inModes(t, mutexKind, locktest.Run) }
func TestFairMutex(t *testing.T)     { inModes(t, fairKind, locktest.Run) }
func TestRWMutex_Write(t *testing.T) { inModes(t, writeKind, locktest.Run) }
func TestSemaphore(t *testing.T)     { inModes(t, semaphoreKind, locktest.Run) }
func TestRWMutex_Sides(t *testing.T) { inModes(t, writeKind, locktest.RunRW) }

// The same inside the process and in fake time: they need no server.
func TestVirtual_Mutex(t *testing.T)     { inModes(t, virtual(mutexKind), locktest.Run) }
func TestVirtual_FairMutex(t *testing.T) { inModes(t, virtual(fairKind), locktest.Run) }
func TestVirtual_Write(t *testing.T)     { inModes(t, virtual(writeKind), locktest.Run) }
func TestVirtual_Semaphore(t *testing.T) { inModes(t, virtual(semaphoreKind), locktest.Run) }
func TestVirtual_Sides(t *testing.T)     { inModes(t, virtual(writeKind), locktest.RunRW) }

func virtual(k locktest.Kind) locktest.Kind { k.Virtual = true; return k }

// inModes runs a suite as a lock is by default, where no grant by the server is trusted without asking, and where a lock
// is never passed on inside the process. The latter two run where they make a difference, and in fake time everywhere without -short. On real
// servers they do not run where repetitions are left out.
func inModes(t *testing.T, k locktest.Kind, suite func(t *testing.T, k locktest.Kind, only ...string)) {
	suite(t, k)
	if !k.Virtual && redistest.Quick() {
		return
	}
	only := locktest.EachMode
	if k.Virtual && !testing.Short() {
		only = nil
	}
	t.Run("confirmed", func(t *testing.T) {
		t.Parallel()
		k := k
		k.Options, k.Confirms = []holdfast.Option{locktest.ConfirmGrants()}, true
		suite(t, k, only...)
	})
	t.Run("unsliced", func(t *testing.T) {
		t.Parallel()
		k := k
		k.Options = []holdfast.Option{holdfast.WithHandoffSlice(0)}
		suite(t, k, only...)
	})
}

// addr is where the examples' Redis listens, which TestMain starts.
var addr string
