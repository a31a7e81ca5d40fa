package chaos

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// Steps of the model by hand: owner, side and token are in in, the interval in
// milliseconds.
type timed struct {
	in        input
	call, ret int64
}

func checkModel(steps []timed) bool {
	var ops []porcupine.Operation
	for i := range steps {
		s := &steps[i]
		ops = append(ops, porcupine.Operation{Input: &s.in, Call: s.call, Return: s.ret})
	}
	for _, part := range cut(ops) {
		if !porcupine.CheckOperations(lockModel(part.begin), part.ops) {
			return false
		}
	}
	return true
}

// The state machine of invariants and kinds: each history is right or wrong.
func TestModel(t *testing.T) {
	lock := func(owner uint64) input { return input{do: stepAcquire, owner: owner} }
	unlock := func(owner uint64) input { return input{do: stepRelease, owner: owner} }
	refused := func(owner uint64) input { return input{do: stepRefused, owner: owner} }
	unknown := func(owner uint64) input { return input{do: stepUnknown, owner: owner} }
	end := func(owner uint64) input { return input{do: stepEnd, owner: owner} }
	read := func(in input) input { in.shared = true; return in }
	token := func(in input, n uint64) input { in.fenced, in.token = true, n; return in }
	heldSeen, freeSeen := input{do: stepHeld}, input{do: stepFree}

	for _, tc := range []struct {
		name  string
		right bool
		steps []timed
	}{
		{"lock, unlock, lock", true, []timed{{lock(1), 1, 2}, {unlock(1), 3, 4}, {lock(2), 5, 6}}},
		{"lock while locked", false, []timed{{lock(1), 1, 2}, {lock(2), 3, 4}, {unlock(1), 5, 6}}},
		{"lock during the unlock", true, []timed{{lock(1), 1, 2}, {unlock(1), 3, 6}, {lock(2), 4, 5}}},
		{"refused while locked", true, []timed{{lock(1), 1, 2}, {refused(2), 3, 4}, {unlock(1), 5, 6}}},
		{"refused while free", false, []timed{{lock(1), 1, 2}, {unlock(1), 3, 4}, {refused(2), 5, 6}}},
		{"refused by oneself", false, []timed{{lock(1), 1, 2}, {refused(1), 3, 4}}},
		{"unlock without lock", false, []timed{{unlock(1), 1, 2}}},
		{"unlock twice", false, []timed{{lock(1), 1, 2}, {unlock(1), 3, 4}, {unlock(1), 5, 6}}},
		{"another's unlock", false, []timed{{lock(1), 1, 2}, {unlock(2), 3, 4}}},
		{"re-entry needs as many unlocks", false, []timed{{lock(1), 1, 2}, {lock(1), 3, 4}, {unlock(1), 5, 6}, {lock(2), 7, 8}}},
		{"re-entry", true, []timed{{lock(1), 1, 2}, {lock(1), 3, 4}, {unlock(1), 5, 6}, {unlock(1), 7, 8}, {lock(2), 9, 10}}},
		{"the end lets others in", true, []timed{{lock(1), 1, 2}, {end(1), 3, 9}, {lock(2), 5, 6}}},
		{"but not before", false, []timed{{lock(1), 1, 2}, {lock(2), 3, 4}, {end(1), 5, 9}}},
		{"the end does not hit the next", false, []timed{{lock(1), 1, 2}, {end(1), 3, 3}, {lock(2), 4, 5}, {end(1), 6, 7}, {lock(3), 8, 9}}},
		{"unknown: was not granted", true, []timed{{unknown(1), 1, 9}, {lock(2), 3, 4}}},
		{"unknown: was granted", true, []timed{{unknown(1), 1, 9}, {refused(2), 3, 4}, {end(1), 1, 9}}},
		{"unknown: explains nothing later", false, []timed{{unknown(1), 1, 4}, {end(1), 1, 4}, {refused(2), 5, 6}}},
		{"held, seen", true, []timed{{lock(1), 1, 2}, {heldSeen, 3, 4}, {unlock(1), 5, 6}, {freeSeen, 7, 8}}},
		{"free, seen as held", false, []timed{{heldSeen, 3, 4}}},
		{"held, seen as free", false, []timed{{lock(1), 1, 2}, {freeSeen, 3, 4}, {unlock(1), 5, 6}}},

		{"tokens grow", true, []timed{{token(lock(1), 3), 1, 2}, {unlock(1), 3, 4}, {token(lock(2), 5), 5, 6}}},
		{"a token again", false, []timed{{token(lock(1), 3), 1, 2}, {unlock(1), 3, 4}, {token(lock(2), 3), 5, 6}}},
		{"re-entry keeps the token", true, []timed{{token(lock(1), 3), 1, 2}, {token(lock(1), 3), 3, 4}}},
		{"re-entry with another", false, []timed{{token(lock(1), 3), 1, 2}, {token(lock(1), 4), 3, 4}}},

		{"readers share", true, []timed{{read(lock(1)), 1, 2}, {read(lock(2)), 3, 4}, {read(unlock(1)), 5, 6}, {read(unlock(2)), 7, 8}, {lock(3), 9, 10}}},
		{"a writer beside a reader", false, []timed{{read(lock(1)), 1, 2}, {lock(2), 3, 4}, {read(unlock(1)), 5, 6}}},
		{"a writer after the first of two readers", false, []timed{{read(lock(1)), 1, 2}, {read(lock(2)), 1, 2}, {read(unlock(1)), 3, 4}, {lock(3), 5, 6}, {read(unlock(2)), 7, 8}}},
		{"a reader beside a writer", false, []timed{{lock(1), 1, 2}, {read(lock(2)), 3, 4}, {unlock(1), 5, 6}}},
		{"downgrade", true, []timed{{lock(1), 1, 2}, {read(lock(1)), 3, 4}, {unlock(1), 5, 6}, {read(lock(2)), 7, 8}, {refused(3), 9, 10}, {read(unlock(1)), 11, 12}}},
		{"upgrade", false, []timed{{read(lock(1)), 1, 2}, {lock(1), 3, 4}, {read(unlock(1)), 5, 6}}},
		{"a reader refused by a writer", true, []timed{{lock(1), 1, 2}, {read(refused(2)), 3, 4}}},
		{"a reader refused by a reader", false, []timed{{read(lock(1)), 1, 2}, {read(refused(2)), 3, 4}}},
		{"readers share a token", true, []timed{{token(read(lock(1)), 3), 1, 2}, {token(read(lock(2)), 3), 3, 4}}},
		{"a reader with a smaller token than another", true, []timed{{token(read(lock(1)), 3), 1, 2}, {token(read(lock(2)), 2), 3, 4}}},
		{"a reader with a smaller token than a writer before", false, []timed{{token(lock(1), 3), 1, 2}, {unlock(1), 3, 4}, {token(read(lock(2)), 2), 5, 6}}},
		{"a writer with a reader's token", false, []timed{{token(read(lock(1)), 3), 1, 2}, {read(unlock(1)), 3, 4}, {token(lock(2), 3), 5, 6}}},
		{"a reader beside a writer that was downgraded", true, []timed{{token(lock(1), 3), 1, 2}, {token(read(lock(1)), 3), 3, 4}, {unlock(1), 5, 6}, {token(read(lock(2)), 3), 7, 8}}},
		{"a writer that reads with another token", false, []timed{{token(lock(1), 3), 1, 2}, {token(read(lock(1)), 4), 3, 4}}},
		{"the ends of a dead owner end both sides", true, []timed{{lock(1), 1, 2}, {read(lock(1)), 3, 4}, {end(1), 5, 9}, {read(end(1)), 5, 9}, {lock(2), 6, 7}}},
		{"the end of one side leaves the other", false, []timed{{lock(1), 1, 2}, {read(lock(1)), 3, 4}, {end(1), 5, 9}, {lock(2), 6, 7}}},
		{"which goes on", true, []timed{{lock(1), 1, 2}, {read(lock(1)), 3, 4}, {end(1), 5, 6}, {read(unlock(1)), 7, 8}, {lock(2), 9, 10}}},
		{"a reader's unlock is not a writer's", false, []timed{{lock(1), 1, 2}, {read(unlock(1)), 3, 4}}},
		{"a reader twice", false, []timed{{read(lock(1)), 1, 2}, {read(lock(1)), 3, 4}, {read(unlock(1)), 5, 6}, {lock(2), 7, 8}, {read(unlock(1)), 9, 10}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if checkModel(tc.steps) != tc.right {
				t.Errorf("judged right: %v, want %v", !tc.right, tc.right)
			}
		})
	}
}

// From what callers and the server's file say to the model.
func TestLinear(t *testing.T) {
	for _, tc := range []struct {
		name   string
		make   func(h *handmade)
		want   []string
		ghosts int
	}{
		{"in turn", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			h.hold(0, busyMutex, 9, 20)
			h.lease(1, busyMutex, 30, 40)
			h.hold(1, busyMutex, 29, 40)
			h.op(0, TryLock, busyMutex, Refused, 33, 34)
		}, nil, 0},
		{"refused because of a process that keeps it", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			h.idle(0, busyMutex, 9, 900)
			h.op(1, TryLock, busyMutex, Refused, 30, 40)
		}, []string{"impossible answers"}, 0},
		{"and that did not answer", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			h.idle(0, busyMutex, 9, 900)
			h.op(1, TryLock, busyMutex, Refused, 30, 131)
		}, nil, 0},
		{"refused because of it, and of one that waits", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			h.idle(0, busyMutex, 9, 900)
			h.op(1, TryLock, busyMutex, Refused, 30, 40)
			h.Truth.Queued = map[string][]Span{busyMutex: {{25 * ms, 35 * ms}}}
		}, nil, 0},
		{"granted to a TryLock that did not hear it", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			h.idle(0, busyMutex, 9, 35)
			h.hold(1, busyMutex, 35, 131)
			h.op(1, TryLock, busyMutex, Refused, 30, 131)
			h.op(0, Peek, busyMutex, OK, 50, 60)
		}, nil, 1},
		{"seen in Redis, where a process keeps it", func(h *handmade) {
			h.lease(0, busyMutex, 10, 20)
			h.idle(0, busyMutex, 9, 900)
			h.op(1, Peek, busyMutex, OK, 30, 40)
		}, nil, 0},
		{"refused for no reason", func(h *handmade) {
			h.op(0, TryLock, busyMutex, Refused, 33, 34)
		}, []string{"impossible answers"}, 0},
		{"refused because of what another was not told", func(h *handmade) {
			h.op(1, TryLock, busyMutex, Unavailable, 10, 20)
			h.hold(1, busyMutex, 12, 40)
			h.op(0, TryLock, busyMutex, Refused, 33, 34)
		}, nil, 1},
		{"refused after that was undone", func(h *handmade) {
			h.op(1, TryLock, busyMutex, Unavailable, 10, 20)
			h.hold(1, busyMutex, 12, 30)
			h.op(0, TryLock, busyMutex, Refused, 33, 34)
		}, []string{"impossible answers"}, 1},
		{"an Unlock that has no answer ends with the hold", func(h *handmade) {
			h.unlock(h.lease(0, busyMutex, 10, 0), Unavailable, 20)
			h.hold(0, busyMutex, 9, 50)
			h.op(1, TryLock, busyMutex, Refused, 40, 41)
			h.lease(1, busyMutex, 60, 70)
			h.hold(1, busyMutex, 59, 70)
		}, nil, 0},
		{"a lost lease does not end before its deadline", func(h *handmade) {
			h.unlock(h.lease(0, busyMutex, 10, 0), Lost, 1500)
			h.hold(0, busyMutex, 9, 1030)
			h.lease(1, busyMutex, 900, 950)
			h.hold(1, busyMutex, 899, 950)
		}, []string{"impossible answers"}, 0},
		{"another gets in when it has ended", func(h *handmade) {
			h.unlock(h.lease(0, busyMutex, 10, 0), Lost, 1500)
			h.hold(0, busyMutex, 9, 1030)
			h.lease(1, busyMutex, 1040, 1050)
			h.hold(1, busyMutex, 1035, 1050)
		}, nil, 0},
		{"refused because of one who took several, in vain", func(h *handmade) {
			h.op(1, Several, busyMutex, Ended, 10, 50)
			h.hold(1, busyMutex, 12, 40)
			h.op(0, TryLock, busyMutex, Refused, 33, 34)
		}, nil, 0},
		{"granted to one who waits on, and does not hear of it", func(h *handmade) {
			h.op(1, Lock, busyMutex, OK, 10, 2000).Deadline = 3000 * ms
			h.hold(1, busyMutex, 12, 1012)
			h.op(0, TryLock, busyMutex, Refused, 33, 34)
			h.hold(1, busyMutex, 1990, 2990)
		}, nil, 1},
		{"granted unheard to a process that has just given the lock back", func(h *handmade) {
			h.lease(1, busyMutex, 10, 20)
			h.hold(1, busyMutex, 9, 20)
			h.hold(1, busyMutex, 20, 500)
			h.op(0, TryLock, busyMutex, Refused, 333, 334)
		}, nil, 1},
		{"granted unheard, and given back in the moment of the next grant", func(h *handmade) {
			h.hold(1, busyMutex, 10, 50).End.Hi = 56 * ms
			h.op(0, TryLock, busyMutex, Refused, 20, 21)
			h.op(1, Lock, busyMutex, OK, 30, 55).Deadline = 1050 * ms
			h.hold(1, busyMutex, 50, 70).Start.Hi = 56 * ms
		}, nil, 1},
		{"refused behind a TryLock of the same process", func(h *handmade) {
			h.op(0, TryLock, busyRW, Refused, 10, 60)
			h.op(0, TryLock, busyRW, Refused, 33, 34).Shared = true
			h.lease(1, busyRW, 5, 20).Token = 1
			h.hold(1, busyRW, 5, 20)
		}, nil, 0},
		{"refused behind a TryLock of another process", func(h *handmade) {
			h.op(0, TryLock, busyRW, Refused, 10, 60)
			h.op(1, TryLock, busyRW, Refused, 33, 34).Shared = true
			h.lease(1, busyRW, 5, 20).Token = 1
			h.hold(1, busyRW, 5, 20)
		}, []string{"impossible answers"}, 0},
		{"refused behind one who has given up", func(h *handmade) {
			h.op(0, Lock, busyRW, Ended, 10, 20)
			h.Truth.Queued = map[string][]Span{busyRW: {{12 * ms, 35 * ms}}}
			h.op(1, TryLock, busyRW, Refused, 33, 34).Shared = true
		}, nil, 0},
		{"refused when that one has been withdrawn", func(h *handmade) {
			h.op(0, Lock, busyRW, Ended, 10, 20)
			h.Truth.Queued = map[string][]Span{busyRW: {{12 * ms, 30 * ms}, {35 * ms, 50 * ms}}}
			h.op(1, TryLock, busyRW, Refused, 33, 34).Shared = true
		}, []string{"impossible answers"}, 0},
		{"an Unlock of what a downgrade has left, without an answer", func(h *handmade) {
			w := h.lease(0, busyRW, 10, 20)
			r := h.op(0, Lock, busyRW, OK, 12, 13)
			r.Shared, r.Chain, r.Deadline = true, w.Chain, 1010*ms
			w.Token, r.Token = 1, 1
			h.unlock(r, Unavailable, 25)
			h.hold(0, busyRW, 10, 20)
			h.hold(0, busyRW, 20, 50).Write = false
			h.op(1, TryLock, busyRW, Refused, 40, 41)
		}, nil, 0},
		{"the wait of a dead process ends with what it held", func(h *handmade) {
			h.Processes[0].Died = 100 * ms
			h.op(0, Lock, busyMutex, "", 10, 0).Return = never
			h.hold(0, busyMutex, 50, 1050)
			h.op(1, TryLock, busyMutex, Refused, 900, 901)
			h.lease(1, busyMutex, 1060, 1070)
			h.hold(1, busyMutex, 1055, 1070)
		}, nil, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := byHand()
			tc.make(h)
			violations, amb := Linear(h.History, 10*time.Second)
			want(t, violations, tc.want...)
			if amb.Ghosts != tc.ghosts {
				t.Errorf("%d ghosts, want %d", amb.Ghosts, tc.ghosts)
			}
		})
	}
}
