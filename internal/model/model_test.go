package model

import (
	"strings"
	"testing"
)

// With two faults there are 4.1 million states: half a minute, and the race detector, which has
// nothing to look for in code without goroutines, makes minutes of them.
func TestProtocol_KeepsItsPromises(t *testing.T) {
	for faults := range mostFaults + 1 {
		r := explore("", faults)
		t.Logf("%d faults: %d states", faults, r.states)
		if r.broken != "" {
			t.Fatalf("%s:\n  %s", r.broken, strings.Join(r.how, "\n  "))
		}
	}
}

// The exploration finds what it should: each of these is the protocol without one of
// its ideas.
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
		"a place is given up before it is known of":            "has left a trace",
		"nobody polls":                                         "waits for ever",
		"a grant has no TTL":                                   "the lock stays",
		"the dead are granted to, for ever":                    "the lock stays",
		"a dropped waiter returns to the tail":                 "order of arrival",
	} {
		t.Run(string(b), func(t *testing.T) {
			r := explore(b, 2)
			if !strings.Contains(r.broken, want) {
				t.Fatalf("found %q in %d states, want %q", r.broken, r.states, want)
			}
			t.Logf("%s, after %d steps:\n  %s", r.broken, len(r.how), strings.Join(r.how, "\n  "))
		})
	}
}
