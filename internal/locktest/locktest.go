// Package locktest is the suite that every kind of lock passes: what the invariants
// promise of a lock, each scenario as a test against a real server with real faults, or in a virtual world: in the test's
// process and in fake time, on a Redis of package vredis behind the same proxy.
//
// Tests only. A scenario is a function in one of the maps below (those in files that begin with rw are for
// read-write locks alone), named after what it shows; its Env makes the server, managers and faults. It runs for each
// kind of lock and in each mode, and some groups in a cluster:
//
//	go test -run '^TestMutex$/host/WaitingIsIdle' .
//	go test -run '^TestVirtual_Mutex$/grant/GrantMeetsClose' .
//
// A scenario that cannot be virtual is in realOnly, with the reason. In fake time nothing takes time by itself: a loop has to wait for something,
// or to call tick. Give a scenario a name that no other scenario has. A number of docs/internals/SCENARIOS.md or docs/internals/VERIFICATION.md in its comment is for the
// row there that has to name it.
package locktest

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Kind is a kind of lock under test.
type Kind struct {
	Name string
	Lock func(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker
	// Async is LockAsync of the same lock.
	Async func(l holdfast.Locker, ctx context.Context) <-chan holdfast.Result
	// Places says that each waiter has a place of its own in Redis's queue, and the
	// order is kept there; otherwise the waiters of a process share one.
	Places bool
	// Write says that it is the write side of a read-write lock.
	Write bool
	// Permits says that it is all permits of a semaphore: no lock of it has a token.
	Permits bool
	// Confirms says that every grant by the server is asked about.
	Confirms bool
	// Options are those of all managers, in front of a scenario's own.
	Options []holdfast.Option
	// Virtual has scenarios run inside the process and in fake time.
	Virtual bool
	// Client makes the managers' clients; nil: redis.NewClient.
	Client func(opt *redis.Options) redis.UniversalClient
}

// Run runs the whole suite, or only some groups of it.
func Run(t *testing.T, k Kind, only ...string) { k.runAll(t, lockGroups, only) }

// RunRW runs what is special about read-write locks, or only some groups of it. k is the write side.
func RunRW(t *testing.T, k Kind, only ...string) { k.runAll(t, sideGroups, only) }

func (k Kind) runAll(t *testing.T, groups []group, only []string) {
	for _, g := range groups {
		if len(only) > 0 && !slices.Contains(only, g.name) || g.of == places && !k.Places || g.of == lingers && k.Places || k.Permits && g.of != permitsToo {
			continue
		}
		for name, scenario := range g.scenarios {
			if k.Virtual && realOnly[name] != "" || !k.Virtual && redistest.Quick() && !inQuick(g, name, k.Name) {
				continue
			}
			k.run(t, g.name, name, scenario)
		}
	}
}

// run runs a scenario in the kind's world.
func (k Kind) run(t *testing.T, group, name string, scenario func(*Env)) {
	t.Run(group+"/"+name, func(t *testing.T) {
		t.Parallel()
		in := func(t *testing.T) {
			defer goOn(t)
			if k.Virtual { // else one that waits for what never comes would run until there is no memory left
				defer time.AfterFunc(longest, func() { panic(t.Name() + " still runs after " + longest.String() + " of its time") }).Stop()
			}
			scenario(&Env{T: t, kind: k, Key: "locktest:" + name})
		}
		if k.Virtual {
			defer goOn(t) // goroutines of a failed scenario may be blocked forever, which is a panic of the bubble
			synctest.Test(t, in)
		} else {
			in(t)
		}
	})
}

// goOn keeps a panic that follows from a failure of t, such as the use of a lease that was not granted, from ending the other tests.
func goOn(t *testing.T) {
	if !t.Failed() {
		return
	}
	if r := recover(); r != nil {
		t.Errorf("panic: %v", r)
	}
}

var bg = context.Background()

// Times of the suite. A bound on time tells what is right on a slow machine from what is
// wrong on a fast one, so it lies between the two: scenarios make the wrong slow, with
// leases of a minute and waiters that do not poll.
const (
	// longest is for how long a scenario runs in fake time.
	longest = time.Hour
	// lease is the usual one: a holder that died must be outlived by tests, and one that
	// lives must renew it on a busy machine. An Unlock waits for a quarter of it, and for at
	// most a second.
	lease = 6 * time.Second
	// patience is for what comes, or never does.
	patience = redistest.Patience
	// prompt is for what waits for no other caller, see bound. What waits for Redis to answer waits for 5 s,
	// go-redis's time-out for reading.
	prompt = 2 * time.Second
	// claim is for how long a release makes a waiter the owner that has not confirmed it. A waiter that took lostClaim had to
	// wait for the end of a claim.
	claim     = 2 * time.Second
	lostClaim = claim * 3 / 4
)

// byMessage are options of managers whose callers find out nothing by themselves while
// patience lasts, neither by polling nor by keeping their places nor when a lease ends.
var byMessage = []holdfast.Option{
	holdfast.WithPollInterval(time.Hour), holdfast.WithFairPatience(time.Hour), holdfast.WithLease(time.Hour),
}
