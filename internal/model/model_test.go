package model

import (
	"fmt"
	"strings"
	"testing"
)

// With two faults there are 3.9 million states: half a minute, and the race detector, which has
// nothing to look for in code without goroutines, makes minutes of them.
func TestProtocol_KeepsItsPromises(t *testing.T) {
	for faults := range mostFaults + 1 {
		t.Run(fmt.Sprintf("between processes, %d faults", faults), func(t *testing.T) { searchHandover("", faults).mustBeWhole(t) })
	}
	t.Run("beside one of ours", func(t *testing.T) { searchEntry("", false).mustBeWhole(t) })
	t.Run("beside Redisson", func(t *testing.T) { searchEntry("", true).mustBeWhole(t) })
}

// The search finds what it should: each of these is the protocol without one of its ideas.
func TestProtocol_SeededBugsAreFound(t *testing.T) {
	for b, want := range map[bug]string{
		"a message is trusted whatever its age":                "two processes trust",
		"a message is believed after the claim was given up":   "has left a trace",
		"the message is sent before its listeners are counted": "two processes trust",
		"trust counts from the reply":                          "two processes trust",
		"a release does not look at the owner":                 "two processes trust",
		"who cancels does not leave":                           "has left a trace",
		"no tombstones":                                        "has left a trace",
		"a keep makes a place":                                 "has left a trace",
		"nobody polls":                                         "waits for ever",
		"a grant has no TTL":                                   "the lock stays",
		"the dead are granted to, for ever":                    "the lock stays",
		"a dropped waiter returns to the tail":                 "order of arrival",
	} {
		t.Run(string(b), func(t *testing.T) { searchHandover(b, 2).mustFind(t, want) })
	}
}

func TestProtocol_SeededBugsInsideAreFound(t *testing.T) {
	for b, want := range map[bug]struct {
		plain  bool
		broken string
	}{
		"a message is taken for a later claim":             {false, "held by two"},
		"a message is taken while a request is on its way": {false, "never free"},
		"nobody asks whether others wait":                  {false, "more than two slices"},
		"the answer is forgotten":                          {false, "more than two slices"},
		"a request on its way is forgotten":                {false, "never free"},
		"who leaves keeps its place":                       {false, "never free"},
		"Close leaves the lock":                            {false, "never free"},
		"nobody polls":                                     {false, "nothing will wake"},
		"who gives way has no timer":                       {true, "waits for ever"},
		"who gives way hears its own release":              {true, "it was their turn"},
		"nobody gives way":                                 {true, "it was their turn"},
	} {
		t.Run(string(b), func(t *testing.T) { searchEntry(b, want.plain).mustFind(t, want.broken) })
	}
}

func searchHandover(b bug, faults int8) result {
	return search(start(faults),
		func(s handover) []step[handover] { return s.steps(b) },
		func(s handover) string { return s.broken(b) }, itself)
}

func searchEntry(b bug, plain bool) result {
	return search(entry{plain: plain},
		func(e entry) []step[entry] { return e.steps(b) },
		func(e entry) string { return e.broken(b) }, itself)
}

func (r result) mustBeWhole(t *testing.T) {
	t.Helper()
	t.Logf("%d states", r.states)
	if r.broken != "" {
		t.Fatalf("%s:\n  %s", r.broken, strings.Join(r.how, "\n  "))
	}
}

func (r result) mustFind(t *testing.T, want string) {
	t.Helper()
	if !strings.Contains(r.broken, want) {
		t.Fatalf("found %q in %d states, want %q:\n  %s", r.broken, r.states, want, strings.Join(r.how, "\n  "))
	}
	t.Logf("%s, after %d steps:\n  %s", r.broken, len(r.how), strings.Join(r.how, "\n  "))
}
