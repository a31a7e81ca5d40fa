package redistest

import (
	"fmt"
	"strings"
	"testing"
)

func TestCallsOf_WhatIsMerged(t *testing.T) {
	for _, tc := range []struct{ command, want string }{
		{"evalsha f 4 a b c d 2 =-= x z y1 y2", "[[evalsha f 2 a b x y1 z] [evalsha f 2 c d x y2 z]]"},
		{"EVAL text 2 a a 1 - 1 2", "[[EVAL text 1 a 1] [EVAL text 1 a 2]]"},
		{"evalsha f 1 a 30000 x", "[[evalsha f 1 a 30000 x]]"},
		{"evalsha f 3 a b c 2 = x", "[[evalsha f 3 a b c 2 = x]]"},
		{"evalsha f 2 a b 1 - x", "[[evalsha f 2 a b 1 - x]]"},
		{"get a", "[]"},
	} {
		if got := fmt.Sprint(callsOf(strings.Fields(tc.command))); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.command, got, tc.want)
		}
	}
}

// A rule for a call finds it among others.
func TestProxy_RulesFindMergedCalls(t *testing.T) {
	of := func(cmd []string) bool {
		keys, _, ok := ScriptCall(cmd)
		return ok && len(keys) == 1 && keys[0] == "b"
	}
	for command, want := range map[string]action{"evalsha f 2 a b 1 = x": loseReply, "evalsha f 2 a c 1 = x": forward} {
		if v, _ := judge([]*rule{{match: of, left: 1, action: loseReply}}, strings.Fields(command)); v.action != want {
			t.Errorf("%s: action %v, want %v", command, v.action, want)
		}
	}
}
