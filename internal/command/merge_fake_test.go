package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// oneByOne has a server answer as Redis does, whatever the lanes that ask: one command at a time.
func oneByOne(answer func(context.Context, *redis.Cmd)) func(context.Context, *redis.Cmd) {
	var mu sync.Mutex
	return func(ctx context.Context, cmd *redis.Cmd) {
		mu.Lock()
		defer mu.Unlock()
		answer(ctx, cmd)
	}
}

// manyScript can be merged; fits says what its replies are.
func manyScript(fits func(any) bool) *Script { return NewScript("many", "one", "form", fits) }

// calls takes a command of s apart; each call is its keys and then its arguments.
func (s *Script) calls(t *testing.T, args []any) (calls [][]any) {
	t.Helper()
	n := args[argNumKeys].(int)
	keys, argv := args[argFirstKey:argFirstKey+n], args[argFirstKey+n:]
	if args[argScript] == s.sha || args[argScript] == s.text {
		return [][]any{slices.Concat(keys, argv)}
	}
	if args[argScript] != s.many.sha && args[argScript] != s.many.text {
		t.Fatalf("another script: %v", args)
	}
	width, shape := argv[0].(int), argv[1].(string)
	shared := strings.Count(shape, "=")
	common, own := argv[2:2+shared], argv[2+shared:]
	for len(keys) > 0 {
		call, next := slices.Clone(keys[:width]), common
		keys = keys[width:]
		for _, sign := range shape {
			from := &own
			if sign == '=' {
				from = &next
			}
			call = append(call, (*from)[0])
			*from = (*from)[1:]
		}
		calls = append(calls, call)
	}
	if len(own) > 0 {
		t.Fatalf("arguments too many: %v", own)
	}
	return calls
}

// answers has the fake server answer each call of s by itself: with its first key, unless reply says otherwise.
func (f *fakeServer) answers(t *testing.T, s *Script, reply func(call []any) any) {
	f.answer = func(_ context.Context, cmd *redis.Cmd) {
		calls := s.calls(t, cmd.Args())
		all, failures := []any{}, []any{}
		for i, c := range calls {
			v := reply(c)
			if err, failed := v.(error); failed && len(calls) > 1 {
				failures, v = append(failures, int64(i+1), err.Error()), nil
			}
			all = append(all, v)
		}
		switch err, failed := all[0].(error); {
		case len(all) > 1:
			cmd.SetVal(append(all, failures))
		case failed:
			cmd.SetErr(err)
		default:
			cmd.SetVal(all[0])
		}
	}
}

// submitAll submits calls of s, each with a key and the arguments of its own.
func submitAll(t *testing.T, x *Executor, s *Script, n int, args ...any) []*outcome {
	t.Helper()
	var calls []*Call
	var outcomes []*outcome
	for i := range n {
		o := newOutcome()
		outcomes = append(outcomes, o)
		list := s.Args(1, append([]any{fmt.Sprint("k", i), fmt.Sprint("own", i)}, args...)...)
		calls = append(calls, &Call{Script: s, Args: list, Handler: o, Patience: time.Minute})
	}
	if !x.Submit(time.Now(), calls...) {
		t.Fatal("Submit refused")
	}
	return outcomes
}

// replyError is what Redis says.
type replyError string

func (e replyError) Error() string { return string(e) }
func (replyError) RedisError()     {}
