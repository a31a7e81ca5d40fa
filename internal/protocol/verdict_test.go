package protocol_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
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
		want  lock.Reply
		wrong string
		ok    bool
	}{
		{name: "held", reply: held(), want: lock.Reply{Says: lock.Held, State: lock.LeftOpen, TTL: 50 * time.Millisecond, Clock: 7, Foreign: true}, ok: true},
		{name: "held, and more", reply: held("later"), want: lock.Reply{Says: lock.Held, State: lock.LeftOpen, TTL: 50 * time.Millisecond, Clock: 7, Foreign: true}, ok: true},
		{name: "another kind", reply: []any{int64(protocol.AcquireKind), "stock", "a list"}, want: lock.Reply{Says: lock.OtherKind}, wrong: "the key stock holds a list", ok: true},
		{name: "buried", reply: []any{int64(protocol.AcquireBuried)}, want: lock.Reply{Says: lock.Buried}, ok: true},
		{name: "held, cut short", reply: held()[:4]},
		{name: "held, with a text", reply: []any{int64(protocol.AcquireHeld), "1", int64(0), int64(0), int64(0)}},
		{name: "another kind, cut short", reply: []any{int64(protocol.AcquireKind), "stock"}},
		{name: "no code", reply: []any{"OK"}},
		{name: "empty", reply: []any{}},
		{name: "a token", reply: int64(3)},
		{name: "nil", reply: nil},
	} {
		var got lock.Reply
		ok := protocol.ParseVerdict(tc.reply, &got)
		if ok != tc.ok {
			t.Errorf("%s: %v, want %v", tc.name, ok, tc.ok)
			continue
		}
		if wrong := got.Cause; ok && (wrong != nil) != (tc.wrong != "") || ok && wrong != nil && wrong.Error() != tc.wrong {
			t.Errorf("%s: wrong key %v, want %q", tc.name, wrong, tc.wrong)
		}
		if got.Cause = nil; ok && !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
}

// Replies of multi_acquire that are no grant.
func TestParseRefusal(t *testing.T) {
	for _, tc := range []struct {
		name   string
		reply  any
		about  int64
		waited bool
		says   lock.Says
		ok     bool
	}{
		{"held", []any{int64(protocol.AcquireHeld), int64(2), int64(0)}, 2, false, lock.Held, true},
		{"waited for", []any{int64(protocol.AcquireHeld), int64(2), int64(1)}, 2, true, lock.Held, true},
		{"another kind", []any{int64(protocol.AcquireKind), int64(2), "stock", "a list"}, 2, false, lock.OtherKind, true},
		{name: "another code", reply: []any{int64(protocol.AcquireBuried), int64(1)}},
		{name: "cut short", reply: []any{int64(protocol.AcquireHeld), int64(2)}},
		{name: "no lock", reply: []any{int64(protocol.AcquireHeld)}},
		{name: "a grant", reply: int64(0)},
	} {
		var x lock.Reply
		about, waited, ok := protocol.ParseRefusal(tc.reply, &x)
		if ok != tc.ok || ok && (about != tc.about || waited != tc.waited || x.Says != tc.says) {
			t.Errorf("%s: %d %v %v %v", tc.name, about, waited, x.Says, ok)
		}
	}
}
