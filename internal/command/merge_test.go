package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

func TestMerge_GivesEachCallItsOwnReply(t *testing.T) {
	bubble(t, func(t *testing.T, x *Executor, srv *fakeServer) {
		s := manyScript(nil)
		srv.answers(t, s, func(call []any) any {
			if len(call) != 4 || call[1] != strings.Replace(call[0].(string), "k", "own", 1) || call[2] != "same" || call[3] != 7 {
				t.Errorf("a call is %v", call)
			}
			return call[0]
		})
		const n = 600
		for i, o := range submitAll(t, x, s, n, "same", 7) {
			if r := <-o.replies; r.Outcome != Answered || r.Value != fmt.Sprint("k", i) {
				t.Errorf("call %d: %v, %v, %v", i, r.Outcome, r.Value, r.Err)
			}
		}
		if commands, _ := x.Commands(); commands > n/8 {
			t.Errorf("%d commands", commands)
		}
	})
}

// A room is used again only if go-redis, and so no hook of the client, has seen what is in it.
func TestMerge_RoomsOfMergedCallsAreUsedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, x *Executor, srv *fakeServer) {
		s := manyScript(nil)
		type seen struct{ args, copy []any }
		var kept []seen // guarded by oneByOne
		srv.answers(t, s, func(call []any) any { return call[0] })
		answer := srv.answer
		srv.answer = oneByOne(func(ctx context.Context, cmd *redis.Cmd) {
			kept = append(kept, seen{cmd.Args(), slices.Clone(cmd.Args())})
			answer(ctx, cmd)
		})
		submit := func(n int) (rooms []*Room) {
			var calls []*Call
			var outcomes []*outcome
			for i := range n {
				o, room := newOutcome(), NewRoom()
				args := append(CountKeys(append(s.Begin(room), fmt.Sprint("k", i))), fmt.Sprint("own", i), "same")
				calls, outcomes, rooms = append(calls, &Call{Script: s, Args: args, Room: room, Handler: o, Patience: time.Minute}), append(outcomes, o), append(rooms, room)
			}
			x.Submit(time.Now(), calls...)
			for i, o := range outcomes {
				if r := <-o.replies; r.Outcome != Answered || r.Value != fmt.Sprint("k", i) {
					t.Errorf("call %d: %v, %v, %v", i, r.Outcome, r.Value, r.Err)
				}
			}
			synctest.Wait()
			return rooms
		}
		for range 4 {
			for _, r := range submit(1) {
				if r[argFirstKey] != "k0" {
					t.Errorf("the room of a call that went alone has %v", r)
				}
			}
			for i, r := range submit(100) {
				if *r != (Room{}) {
					t.Errorf("the room of merged call %d has %v", i, r)
				}
			}
		}
		for _, k := range kept {
			if !slices.Equal(k.args, k.copy) {
				t.Errorf("go-redis had %v, and has %v", k.copy, k.args)
			}
		}
	})
}

// An error, a strange reply and none each stay with the call that they are to.
func TestMerge_ErrorsStayWithTheirCalls(t *testing.T) {
	bubble(t, func(t *testing.T, x *Executor, srv *fakeServer) {
		s := manyScript(nil)
		odd := map[any]any{
			"k3":  replyError("READONLY You can't write against a read only replica."),
			"k5":  replyError("WRONGTYPE Operation against a key holding the wrong kind of value (in user_script: many)"),
			"k8":  replyError("HOLDFAST cannot set a TTL: NOPERM"),
			"k13": nil,
		}
		srv.answers(t, s, func(call []any) any {
			if reply, ok := odd[call[0]]; ok {
				return reply
			}
			return call[0]
		})
		want := map[int]Outcome{3: Refused, 5: Failed, 8: Barred, 13: Unknown}
		for i, o := range submitAll(t, x, s, 64) {
			if r := <-o.replies; r.Outcome != want[i] || want[i] == Answered && r.Value != fmt.Sprint("k", i) {
				t.Errorf("call %d: %v, %v, %v", i, r.Outcome, r.Value, r.Err)
			}
		}
		if commands, _ := x.Commands(); commands > 8 {
			t.Errorf("%d commands", commands)
		}
	})
}

// What Redis says of a whole command it need not say of each of its calls.
func TestMerge_RefusedCommandsAreSentApart(t *testing.T) {
	for text, again := range map[string]bool{
		"NOPERM this user has no permissions to access one of the keys used as arguments": true,
		"CROSSSLOT Keys in request don't hash to the same slot":                           true,
		"TRYAGAIN Multiple keys request during rehashing of slot":                         true,
		"LOADING Redis is loading the dataset in memory":                                  true,
		"ERR Error compiling script (new function): user_script:1":                        true,
		"ERR too many arguments":                                                          false, // it may have run
		"ERR user_script:1: attempt to call a nil value script: x, on @user_script:1.":    false,
	} {
		bubble(t, func(t *testing.T, x *Executor, srv *fakeServer) {
			s := manyScript(nil)
			var merged atomic.Int64
			srv.answer = oneByOne(func(ctx context.Context, cmd *redis.Cmd) {
				switch calls := s.calls(t, cmd.Args()); {
				case len(calls) > 1:
					merged.Add(1)
					cmd.SetErr(replyError(text))
				case calls[0][0] == "k7":
					cmd.SetErr(replyError("NOPERM"))
				default:
					echo(ctx, cmd)
				}
			})
			for i, o := range submitAll(t, x, s, 32) {
				r := <-o.replies
				want := Answered
				switch {
				case i == 7 && (again || r.Outcome == Barred): // it went by itself
					want = Barred
				case !again && merged.Load() > 0 && r.Outcome != Answered:
					want = Unknown
				}
				if again && r.Outcome == Denied && i == 7 { // before the first answer of all
					want = Denied
				}
				if r.Outcome != want {
					t.Errorf("%s: call %d is %v, %v", text, i, r.Outcome, r.Err)
				}
			}
			if merged.Load() == 0 {
				t.Fatalf("%s: nothing was merged", text)
			}
			merged.Store(0)
			for _, o := range submitAll(t, x, s, 32) {
				<-o.replies
			}
			if n := merged.Load(); n > 0 {
				t.Errorf("%s: merged %d times at once", text, n)
			}
			time.Sleep(mergePause)
			for _, o := range submitAll(t, x, s, 32) {
				<-o.replies
			}
			if merged.Load() == 0 {
				t.Errorf("%s: not merged after the pause", text)
			}
		})
	}
}

// The form is sent in full once, and again when the server has forgotten it.
func TestMerge_TheFormIsSentInFullOnlyWhenNeeded(t *testing.T) {
	bubble(t, func(t *testing.T, x *Executor, srv *fakeServer) {
		s := manyScript(nil)
		known, full, unknown := map[any]bool{}, 0, 0
		srv.answer = oneByOne(func(_ context.Context, cmd *redis.Cmd) {
			args := cmd.Args()
			sha := args[argScript]
			if args[argCommand] == eval {
				sha = map[any]any{s.text: s.sha, s.many.text: s.many.sha}[sha]
				known[sha] = true
				full++
			}
			calls := s.calls(t, args)
			switch {
			case !known[sha]:
				unknown++
				cmd.SetErr(redis.ErrNoScript)
			case len(calls) > 1:
				all := []any{}
				for _, c := range calls {
					all = append(all, c[0])
				}
				cmd.SetVal(append(all, []any{}))
			default:
				cmd.SetVal(calls[0][0])
			}
		})
		round := func() {
			t.Helper()
			full, unknown = 0, 0
			for i, o := range submitAll(t, x, s, 64) {
				if r := <-o.replies; r.Value != fmt.Sprint("k", i) {
					t.Errorf("call %d: %v, %v, %v", i, r.Outcome, r.Value, r.Err)
				}
			}
		}
		round()
		round()
		if full > 0 || unknown > 0 {
			t.Errorf("known: %d in full, %d unknown", full, unknown)
		}
		clear(known)
		round()
		if unknown == 0 {
			t.Error("the server has forgotten nothing")
		}
		round()
		round()
		if full > 0 || unknown > 0 {
			t.Errorf("known again: %d in full, %d unknown", full, unknown)
		}
	})
}

// What is sent again goes apart, whatever the first time ended with: nothing would be sent a third time.
func TestMerge_WhatIsSentAgainGoesApart(t *testing.T) {
	bubble(t, func(t *testing.T, x *Executor, srv *fakeServer) {
		s := manyScript(nil)
		forgotten := 0
		srv.answer = oneByOne(func(ctx context.Context, cmd *redis.Cmd) {
			switch n := len(s.calls(t, cmd.Args())); {
			case n > 1 && forgotten == 0:
				forgotten++
				cmd.SetErr(redis.ErrNoScript)
			case n > 1:
				cmd.SetErr(replyError("NOPERM"))
			default:
				echo(ctx, cmd)
			}
		})
		for i, o := range submitAll(t, x, s, crowd) {
			if r := <-o.replies; r.Outcome != Answered || r.Value != fmt.Sprint("k", i) {
				t.Errorf("call %d: %v, %v, %v", i, r.Outcome, r.Value, r.Err)
			}
		}
		if forgotten == 0 {
			t.Error("nothing was merged")
		}
	})
}

// What replicas have to acknowledge is followed by a WAIT, which needs a call of its own.
func TestMerge_LeavesAcknowledgedCallsApart(t *testing.T) {
	bubble(t, func(t *testing.T, x *Executor, srv *fakeServer) {
		s := manyScript(nil)
		srv.answer = oneByOne(func(ctx context.Context, cmd *redis.Cmd) {
			if cmd.Args()[0] == "wait" {
				cmd.SetVal(int64(1))
				return
			}
			if n := len(s.calls(t, cmd.Args())); n > 1 {
				t.Errorf("%d calls as one", n)
				cmd.SetErr(replyError("NOPERM"))
				return
			}
			echo(ctx, cmd)
		})
		o := &outcome{replies: make(chan Reply, 32)}
		var calls []*Call
		for i := range cap(o.replies) {
			calls = append(calls, &Call{Script: s, Args: s.Args(1, fmt.Sprint(i)), Handler: o, Patience: time.Minute, Acks: &Acks{Replicas: 1, Timeout: time.Second}})
		}
		x.Submit(time.Now(), calls...)
		for range calls {
			if r := <-o.replies; r.Outcome != Answered || r.Acked != 1 {
				t.Errorf("%v, %v, acked %d", r.Outcome, r.Err, r.Acked)
			}
		}
	})
}
