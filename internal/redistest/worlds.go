package redistest

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// InWorlds runs a test in parallel with others, in one of two worlds: with -short inside this process and in fake time, where
// Start returns a server as StartVirtual does; otherwise on real servers, and not where repetitions are left out, see Quick.
// make check runs it so, and make full as well.
//
// It is for tests that use nothing but their servers, and in which each loop waits for something: in fake time nothing takes
// time by itself. They have no subtests.
func InWorlds(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	switch {
	case testing.Short():
		inBubbleOf(t, test)
	case Quick():
		t.Skip("make check runs it in fake time, and make full on a real server")
	default:
		test(t)
	}
}

// OnServer is InWorlds with a server.
func OnServer(t *testing.T, test func(t *testing.T, srv *Server)) {
	t.Helper()
	InWorlds(t, func(t *testing.T) { test(t, Start(t)) })
}

// Worlds makes a subtest of what InWorlds runs.
func Worlds(test func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { InWorlds(t, test) }
}

// InFakeTime is InWorlds for a test that is about a short time, in which a machine that stands still would be wrong: it runs
// in fake time each time.
func InFakeTime(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	inBubbleOf(t, test)
}

// OnServerInFakeTime is InFakeTime with a server.
func OnServerInFakeTime(t *testing.T, test func(t *testing.T, srv *Server)) {
	t.Helper()
	InFakeTime(t, func(t *testing.T) { test(t, Start(t)) })
}

func inBubbleOf(t *testing.T, test func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		bubbles.Store(testing.TB(t), true)
		t.Cleanup(func() {
			time.Sleep(lastDial) // after all other cleanups
			bubbles.Delete(testing.TB(t))
		})
		test(t)
	})
}

// lastDial is longer than go-redis, with default options, dials after its client is closed: a bubble must not end before.
const lastDial = time.Minute

// bubbles has the tests that run in fake time.
var bubbles sync.Map // testing.TB: true

// inBubble reports whether tb runs in fake time.
func inBubble(tb testing.TB) bool {
	_, ok := bubbles.Load(tb)
	return ok
}
