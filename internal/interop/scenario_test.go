package interop

import (
	"strings"
	"testing"
)

// scenario is one thing that must hold between the two sides.
type scenario struct {
	name string
	run  func(e *env)
	fit  func(k kind) bool // nil: for every kind
	old  bool              // also with the old line of Redisson
	calm bool              // measures: nothing else runs meanwhile
}

var scenarios = []scenario{
	{name: "wake-up", run: wakeUp, old: true, calm: true},
	{name: "exclusion", run: exclusion, old: true, calm: true},
	{name: "turn", run: turn, fit: func(k kind) bool { return !k.shared }, calm: true},
	{name: "order", run: order, fit: func(k kind) bool { return k.queue }, calm: true},

	{name: "re-entry", run: reentry, old: true},
	{name: "observe", run: observe, old: true},
	{name: "force-unlock", run: forceUnlock, old: true},
	{name: "names", run: names, old: true},
	{name: "name mapper", run: nameMapper},
	{name: "renewal", run: renewal, old: true},
	{name: "expiry", run: expiry},
	{name: "killed holder", run: killedHolder, old: true},
	{name: "paused holder", run: pausedHolder},
	{name: "tokens", run: tokens, fit: func(k kind) bool { return k.fenced }, old: true},
	{name: "multi-lock", run: multiLock, fit: func(k kind) bool { return !k.shared }},
}

func TestRedisson(t *testing.T)    { runScenarios(t, current, func(scenario) bool { return true }) }
func TestOldRedisson(t *testing.T) { runScenarios(t, old, func(s scenario) bool { return s.old }) }

// runScenarios runs those that measure first, one by one, then the others, which mostly
// wait for time to pass, side by side.
func runScenarios(t *testing.T, l line, wanted func(scenario) bool) {
	f := newFleet(t, l)
	for _, calm := range []bool{true, false} {
		t.Run(map[bool]string{true: "calm", false: "busy"}[calm], func(t *testing.T) {
			for _, s := range scenarios {
				if s.calm != calm || !wanted(s) {
					continue
				}
				for _, k := range kinds {
					if s.fit != nil && !s.fit(k) {
						continue
					}
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
