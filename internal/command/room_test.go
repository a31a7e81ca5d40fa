package command

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// roomCall is a call of s whose arguments are in a room.
func roomCall(s *Script, key string, h Handler) *Call {
	room := NewRoom()
	args := append(CountKeys(append(s.Begin(room), key)), "own "+key, "same")
	return &Call{Script: s, Args: args, Room: room, Handler: h, Patience: time.Minute}
}

// A room is used again only if go-redis, and so no hook of the client, has seen what is in it.
func TestMerge_RoomsOfMergedCallsAreUsedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, x *Executor, srv *fakeServer) {
		s := manyScript(nil)
		type seen struct{ args, copy []any }
		var kept []seen // guarded by oneByOne, as is lone
		lone := map[any]bool{}
		srv.answers(t, s, func(call []any) any { return call[0] })
		answer := srv.answer
		srv.answer = oneByOne(func(ctx context.Context, cmd *redis.Cmd) {
			kept = append(kept, seen{cmd.Args(), slices.Clone(cmd.Args())})
			if calls := s.calls(t, cmd.Args()); len(calls) == 1 {
				lone[calls[0][0]] = true
			}
			answer(ctx, cmd)
		})
		submit := func(n int) (rooms []*Room) {
			clear(lone)
			var calls []*Call
			var outcomes []*outcome
			for i := range n {
				o := newOutcome()
				c := roomCall(s, fmt.Sprint("k", i), o)
				calls, outcomes, rooms = append(calls, c), append(outcomes, o), append(rooms, c.Room)
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
				if alone := lone[fmt.Sprint("k", i)]; alone == (*r == Room{}) {
					t.Errorf("the room of call %d, which went alone: %v, has %v", i, alone, r)
				}
			}
			if len(lone) >= mergeFrom*maxLanes { // the last ones that each lane takes can be too few
				t.Errorf("%d of 100 calls went alone", len(lone))
			}
		}
		for _, k := range kept {
			if !slices.Equal(k.args, k.copy) {
				t.Errorf("go-redis had %v, and has %v", k.copy, k.args)
			}
		}
	})
}
