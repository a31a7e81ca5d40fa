package command

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/lock"
)

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
			if r := <-o.replies; r.Outcome != lock.Answered || r.Value != fmt.Sprint("k", i) {
				t.Errorf("call %d: %v, %v, %v", i, r.Outcome, r.Value, r.Err)
			}
		}
		if commands, _ := x.Commands(); commands > n/8 {
			t.Errorf("%d commands", commands)
		}
	})
}

// An error, a strange reply and none each stay with the call that they are to.
func TestMerge_ErrorsStayWithTheirCalls(t *testing.T) {
	bubble(t, func(t *testing.T, x *Executor, srv *fakeServer) {
		s := manyScript(nil)
		odd := map[any]any{
			"k3":  scriptError("READONLY You can't write against a read only replica."),
			"k5":  scriptError("WRONGTYPE Operation against a key holding the wrong kind of value (in user_script: many)"),
			"k8":  scriptError("HOLDFAST cannot set a TTL: NOPERM"),
			"k13": nil,
		}
		srv.answers(t, s, func(call []any) any {
			if reply, ok := odd[call[0]]; ok {
				return reply
			}
			return call[0]
		})
		want := map[int]lock.Outcome{3: lock.Refused, 5: lock.Failed, 8: lock.Barred, 13: lock.Unknown}
		for i, o := range submitAll(t, x, s, 64) {
			if r := <-o.replies; r.Outcome != want[i] || want[i] == lock.Answered && r.Value != fmt.Sprint("k", i) {
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
					cmd.SetErr(scriptError(text))
				case calls[0][0] == "k7":
					cmd.SetErr(scriptError("NOPERM"))
				default:
					echo(ctx, cmd)
				}
			})
			for i, o := range submitAll(t, x, s, 32) {
				r := <-o.replies
				want := lock.Answered
				switch {
				case i == 7 && (again || r.Outcome == lock.Barred): // it went by itself
					want = lock.Barred
				case !again && merged.Load() > 0 && r.Outcome != lock.Answered:
					want = lock.Unknown
				}
				if again && r.Outcome == lock.Denied && i == 7 { // before the first answer of all
					want = lock.Denied
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
				cmd.SetErr(scriptError("NOPERM"))
			default:
				echo(ctx, cmd)
			}
		})
		for i, o := range submitAll(t, x, s, crowd) {
			if r := <-o.replies; r.Outcome != lock.Answered || r.Value != fmt.Sprint("k", i) {
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
				cmd.SetErr(scriptError("NOPERM"))
				return
			}
			echo(ctx, cmd)
		})
		const n = 32
		for want, unacked := range map[int]*Unacked{1: nil, 2: {Want: 2, Acked: 1}} {
			acks := &Acks{Replicas: want, Timeout: time.Second}
			o := submitMany(t, x, n, Call{Script: s, Patience: time.Minute, Acks: acks}, func(i int) string { return fmt.Sprint(i) })
			for range n {
				if r := <-o.replies; r.Outcome != lock.Answered || !reflect.DeepEqual(r.Unacked, unacked) {
					t.Errorf("%v, %v, %v", r.Outcome, r.Err, r.Unacked)
				}
			}
		}
	})
}
