package interop

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// scenario is one thing that must hold between the two sides.
type scenario struct {
	name string
	run  func(e *env)
	fit  func(k kind) bool // nil: for every kind
	main bool              // also with the old line of Redisson, and in a cluster
	calm bool              // measures: nothing else runs meanwhile

	versions bool // also with an earlier version of Holdfast
}

var scenarios = []scenario{
	{name: "wake-up", run: wakeUp, main: true, calm: true, versions: true},
	{name: "exclusion", run: exclusion, main: true, calm: true, versions: true},
	{name: "turn", run: turn, fit: func(k kind) bool { return k.name == "lock" || k.queue || k.fenced }, calm: true},
	{name: "order", run: order, fit: func(k kind) bool { return k.queue }, main: true, calm: true, versions: true},

	{name: "re-entry", run: reentry, main: true},
	{name: "observe", run: observe, main: true},
	{name: "force-unlock", run: forceUnlock, main: true},
	{name: "names", run: names, main: true, versions: true},
	{name: "name mapper", run: nameMapper},
	{name: "renewal", run: renewal, versions: true},
	{name: "expiry", run: expiry},
	{name: "killed holder", run: killedHolder, main: true, versions: true},
	{name: "paused holder", run: pausedHolder},
	{name: "tokens", run: tokens, fit: func(k kind) bool { return k.fenced }, main: true, versions: true},
	{name: "multi-lock", run: multiLock, fit: func(k kind) bool { return !k.shared }},
	{name: "linger", run: linger, fit: func(k kind) bool { return !k.queue }, main: true},
	{name: "permits", run: permits, fit: func(k kind) bool { return k.name == "lock" }, main: true},
	{name: "ticket", run: ticket, fit: func(k kind) bool { return !k.shared && !k.fenced }, main: true},
	{name: "permit ticket", run: permitTicket, fit: func(k kind) bool { return k.name == "lock" }, main: true},
	{name: "value", run: value, main: true},
	{name: "spin lock", run: spinLock, fit: func(k kind) bool { return k.name == "lock" }},
}

// The scenarios of today's Redisson, on one server, run with each kind of lock.
func TestRedisson(t *testing.T) {
	needsRedisson(t)
	runScenarios(t, newFleet(t, current), func(scenario) bool { return true }, eachKind)
}

func TestOldRedisson(t *testing.T) {
	needsRedisson(t)
	runScenarios(t, newFleet(t, old), func(s scenario) bool { return s.main }, kindsInTurn)
}

func TestRedissonInCluster(t *testing.T) {
	needsRedisson(t)
	for _, messages := range []string{"classic", "sharded", "auto"} {
		t.Run(messages, func(t *testing.T) {
			cluster := redistest.StartCluster(t)
			if messages == "sharded" && !cluster.Nodes()[0].Sharded() {
				t.Skip("the servers have no sharded messages")
			}
			all := messages == "auto" || !redistest.Quick() // else how messages come, and no more
			runScenarios(t, ofCluster(t, cluster, current, messages).launch(t), func(s scenario) bool { return s.main && (all || s.name == "wake-up") }, kindsInTurn)
		})
	}
}

// kindsOf chooses the kinds of lock that the n-th scenario runs with, of those that fit it.
type kindsOf func(n int, fit []kind) []kind

func eachKind(_ int, fit []kind) []kind { return fit }

// kindsInTurn is each kind as well. With HOLDFAST_TEST_QUICK it is one, and another one for the next scenario.
func kindsInTurn(n int, fit []kind) []kind {
	if redistest.Quick() {
		n %= len(fit)
		return fit[n : n+1]
	}
	return fit
}

// runScenarios runs those that measure first, one by one, then the others, which mostly
// wait for time to pass, side by side, and beside those of other fleets.
func runScenarios(t *testing.T, f *fleet, wanted func(scenario) bool, chosen kindsOf) {
	for _, calm := range []bool{true, false} {
		if !calm {
			t.Parallel()
		}
		t.Run(map[bool]string{true: "calm", false: "busy"}[calm], func(t *testing.T) {
			for n, s := range scenarios {
				if s.calm != calm || !wanted(s) {
					continue
				}
				fit := slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return s.fit != nil && !s.fit(k) })
				for _, k := range chosen(n, fit) {
					t.Run(s.name+"/"+k.name, func(t *testing.T) {
						if !calm {
							t.Parallel()
						}
						s.run(&env{T: t, fleet: f, kind: k, key: strings.ReplaceAll(s.name, " ", "-") + ":" + k.name})
					})
				}
			}
		})
	}
}
