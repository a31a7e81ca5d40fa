package holdfast_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"

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

// readKind is not exclusive: helper processes hold it, the suite does not run on it.
var readKind = locktest.Kind{
	Name: "read",
	Lock: func(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker {
		return m.RWMutex(name, opts...).RLocker()
	},
}

func TestMain(m *testing.M) {
	roles := locktest.Roles(mutexKind, fairKind, writeKind, readKind)
	roles[callersRole] = redlockCallers
	roles[crowdRole] = crowdProcess
	redistest.RunRole(roles)
	flag.Parse()
	tb := &mainTB{}
	if testing.Short() { // make check needs no server
		embedded := miniredis.NewMiniRedis()
		embedded.ClockTTL(true)
		if err := embedded.Start(); err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(embedded.Close)
		addr = embedded.Addr()
	} else {
		addr = redistest.Start(tb, redistest.WithoutPassword()).Addr()
	}
	code := m.Run()
	tb.finish()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// Every kind on real servers. docs/internals/SCENARIOS.md has what runs where.
func TestMutex(t *testing.T)         { inModes(t, mutexKind, locktest.Run) }
func TestFairMutex(t *testing.T)     { inModes(t, fairKind, locktest.Run) }
func TestRWMutex_Write(t *testing.T) { inModes(t, writeKind, locktest.Run) }
func TestRWMutex_Sides(t *testing.T) { inModes(t, writeKind, locktest.RunRW) }

// The same inside the process and in fake time, in every mode: they need no server.
func TestVirtual_Mutex(t *testing.T)     { inModes(t, virtual(mutexKind), locktest.Run) }
func TestVirtual_FairMutex(t *testing.T) { inModes(t, virtual(fairKind), locktest.Run) }
func TestVirtual_Write(t *testing.T)     { inModes(t, virtual(writeKind), locktest.Run) }
func TestVirtual_Sides(t *testing.T)     { inModes(t, virtual(writeKind), locktest.RunRW) }

func virtual(k locktest.Kind) locktest.Kind { k.Virtual = true; return k }

// inModes runs a suite as a lock is by default, where no grant by the server is trusted without asking, and where a lock
// is never passed on inside the process. On real servers the latter two run where they make a difference, and not where
// repetitions are left out.
func inModes(t *testing.T, k locktest.Kind, suite func(t *testing.T, k locktest.Kind, only ...string)) {
	suite(t, k)
	if !k.Virtual && redistest.Quick() {
		return
	}
	only := locktest.EachMode
	if k.Virtual {
		only = nil
	}
	t.Run("confirmed", func(t *testing.T) {
		t.Parallel()
		k := k
		k.Options, k.Confirms = []holdfast.Option{holdfast.ConfirmGrants()}, true
		suite(t, k, only...)
	})
	t.Run("unsliced", func(t *testing.T) {
		t.Parallel()
		k := k
		k.Options = []holdfast.Option{holdfast.WithHandoffSlice(0)}
		suite(t, k, only...)
	})
}

// addr is where the examples' Redis listens, which TestMain starts: a real one, or with -short one inside the process.
var addr string

// mainTB lets TestMain start the examples' server: what redistest needs of a TB.
type mainTB struct {
	testing.TB
	cleanups []func()
}

func (tb *mainTB) Helper()                   {}
func (tb *mainTB) Failed() bool              { return false }
func (tb *mainTB) Name() string              { return "TestMain" }
func (tb *mainTB) Cleanup(f func())          { tb.cleanups = append(tb.cleanups, f) }
func (tb *mainTB) Log(args ...any)           { fmt.Fprintln(os.Stderr, args...) }
func (tb *mainTB) Logf(f string, a ...any)   { fmt.Fprintf(os.Stderr, f+"\n", a...) }
func (tb *mainTB) Error(args ...any)         { tb.Fatal(args...) }
func (tb *mainTB) Errorf(f string, a ...any) { tb.Fatalf(f, a...) }
func (tb *mainTB) Fatal(args ...any)         { tb.Log(args...); tb.finish(); os.Exit(1) }
func (tb *mainTB) Fatalf(f string, a ...any) { tb.Logf(f, a...); tb.finish(); os.Exit(1) }

func (tb *mainTB) TempDir() string {
	dir, err := os.MkdirTemp("", "holdfast")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (tb *mainTB) finish() {
	for i := len(tb.cleanups) - 1; i >= 0; i-- {
		tb.cleanups[i]()
	}
	tb.cleanups = nil
}
