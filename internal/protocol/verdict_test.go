package protocol_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Replies that the acquire scripts give, with what a later version may add, and some that they do not.
func TestParseVerdict(t *testing.T) {
	held := func(more ...any) []any {
		return append([]any{int64(protocol.AcquireHeld), int64(protocol.StateOpen), int64(50), int64(7), int64(1)}, more...)
	}
	for _, tc := range []struct {
		name  string
		reply any
		want  protocol.Verdict
		wrong string
		ok    bool
	}{
		{name: "held", reply: held(), want: protocol.Verdict{State: protocol.StateOpen, TTL: 50, Clock: 7, Foreign: true}, ok: true},
		{name: "held, and more", reply: held("later"), want: protocol.Verdict{State: protocol.StateOpen, TTL: 50, Clock: 7, Foreign: true}, ok: true},
		{name: "another kind", reply: []any{int64(protocol.AcquireKind), "stock", "a list"}, want: protocol.Verdict{Code: protocol.AcquireKind}, wrong: "the key stock holds a list", ok: true},
		{name: "buried", reply: []any{int64(protocol.AcquireBuried)}, want: protocol.Verdict{Code: protocol.AcquireBuried}, ok: true},
		{name: "held, cut short", reply: held()[:4]},
		{name: "held, with a text", reply: []any{int64(protocol.AcquireHeld), "1", int64(0), int64(0), int64(0)}},
		{name: "another kind, cut short", reply: []any{int64(protocol.AcquireKind), "stock"}},
		{name: "no code", reply: []any{"OK"}},
		{name: "empty", reply: []any{}},
		{name: "a token", reply: int64(3)},
		{name: "nil", reply: nil},
	} {
		got, ok := protocol.ParseVerdict(tc.reply)
		if ok != tc.ok {
			t.Errorf("%s: %v, want %v", tc.name, ok, tc.ok)
			continue
		}
		if wrong := got.Wrong; ok && (wrong != nil) != (tc.wrong != "") || ok && wrong != nil && wrong.Error() != tc.wrong {
			t.Errorf("%s: wrong key %v, want %q", tc.name, wrong, tc.wrong)
		}
		if got.Wrong = nil; ok && got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
}

// Replies of multi_acquire that are no grant.
func TestParseRefusal(t *testing.T) {
	for _, tc := range []struct {
		name  string
		reply any
		want  protocol.Refusal
		ok    bool
	}{
		{"held", []any{int64(protocol.AcquireHeld), int64(2), int64(0)}, protocol.Refusal{Lock: 2}, true},
		{"waited for", []any{int64(protocol.AcquireHeld), int64(2), int64(1)}, protocol.Refusal{Lock: 2, Waited: true}, true},
		{"another code", []any{int64(protocol.AcquireBuried), int64(1)}, protocol.Refusal{}, false},
		{"cut short", []any{int64(protocol.AcquireHeld), int64(2)}, protocol.Refusal{}, false},
		{"no lock", []any{int64(protocol.AcquireHeld)}, protocol.Refusal{}, false},
		{"a grant", int64(0), protocol.Refusal{}, false},
	} {
		if got, ok := protocol.ParseRefusal(tc.reply); ok != tc.ok || ok && got != tc.want {
			t.Errorf("%s: %+v %v, want %+v %v", tc.name, got, ok, tc.want, tc.ok)
		}
	}
}
