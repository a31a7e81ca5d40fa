package chaos

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

const ms = int64(time.Millisecond)

// handmade is a history made by hand, of two processes, calm throughout. Times are in milliseconds.
type handmade struct {
	*History
	next int64
	aof  []string // by the millisecond in which it was written, with a tick each
}

func byHand() *handmade {
	h := &handmade{History: &History{TTL: time.Second, Faulty: 20_000 * ms, Healed: never, Quiesced: 20_000 * ms, End: 20_000 * ms}}
	for i, prefix := range []string{"hf-a", "hf-b"} {
		h.Processes = append(h.Processes, &Process{ID: i, Prefix: prefix, Died: never})
	}
	h.aof = make([]string, 20_000)
	return h
}

// redis adds commands of the server's file, as one script; "+500ms" is the time in so many milliseconds from then.
func (h *handmade) redis(at int64, commands ...string) {
	text := strings.Join(commands, "\n")
	for field := range strings.FieldsSeq(text) {
		if d, err := time.ParseDuration(field); err == nil && field[0] == '+' {
			text = strings.ReplaceAll(text, field, fmt.Sprint(at+d.Milliseconds()))
		}
	}
	h.aof[at] += "MULTI\n" + text + "\nEXEC\n"
}

// held has Redis have an owner from one time to another.
func (h *handmade) held(name, owner string, from, to int64) {
	h.redis(from, "HSET "+name+" "+owner+" 1", "PEXPIREAT "+name+" +1s")
	h.redis(to, "HDEL "+name+" "+owner)
}

// op adds an operation of process p.
func (h *handmade) op(p int, do Action, name string, result Result, call, ret int64) *Op {
	h.next++
	o := &Op{ID: h.next, Proc: p, Worker: 1, Do: do, Name: name, Result: result, Call: call * ms, Return: ret * ms}
	if o.acquires() {
		o.Chain = o.ID
	}
	h.Ops = append(h.Ops, o)
	return o
}

// lease adds a grant at from, good for a bit less than a second, and, if to is not 0, its Unlock.
func (h *handmade) lease(p int, name string, from, to int64) *Op {
	o := h.op(p, Lock, name, OK, from-1, from)
	o.Deadline = (from + 950) * ms
	if to != 0 {
		h.unlock(o, OK, to)
	}
	return o
}

func (h *handmade) unlock(l *Op, result Result, at int64) *Op {
	u := h.op(l.Proc, Unlock, l.Name, result, at, at+1)
	u.Lease, u.Chain, u.Shared, u.Deadline = l.ID, l.Chain, l.Shared, l.Deadline
	return u
}

// judge writes the file, with a tick for each millisecond, and judges.
func (h *handmade) judge() (rules []string) {
	for at, text := range h.aof {
		if at%10 == 0 || text != "" {
			h.Writes = append(h.Writes, []string{"SET", clockKey, fmt.Sprint(len(h.Ticks))})
			h.Ticks = append(h.Ticks, Tick{int64(at) * ms, int64(at)*ms + ms/2})
		}
		for line := range strings.Lines(text) {
			h.Writes = append(h.Writes, strings.Fields(line))
		}
	}
	sortByCall(h.Ops)
	for _, v := range Judge(h.History, Residue{}).Violations {
		rules = append(rules, v.Rule)
	}
	slices.Sort(rules)
	return rules
}

const mutexName, fencedName, queue = "chaos:mutex", "chaos:fenced", "redisson_lock_queue:{chaos:fair}"

// The rules are tested where they are (package judge). Here it is what they are fed with.
func TestJudge(t *testing.T) {
	for _, tc := range []struct {
		name string
		tell func(h *handmade)
		want string
	}{
		{"one after the other", func(h *handmade) {
			h.held(mutexName, "hf-a:1", 9, 21)
			h.lease(0, mutexName, 10, 20)
			h.held(mutexName, "hf-b:1", 22, 31)
			h.lease(1, mutexName, 23, 30)
		}, ""},
		{"two at a time", func(h *handmade) {
			h.held(mutexName, "hf-a:1", 9, 41)
			h.lease(0, mutexName, 10, 40)
			h.lease(1, mutexName, 23, 30)
		}, "claim without hold, overlap"},
		{"a claim lasts until its deadline if nobody unlocks", func(h *handmade) {
			h.held(mutexName, "hf-a:1", 9, 500)
			h.lease(0, mutexName, 10, 0)
		}, "claim without hold"},
		{"death ends a claim", func(h *handmade) {
			h.Processes[0].Died = 400 * ms
			h.held(mutexName, "hf-a:1", 9, 500)
			h.lease(0, mutexName, 10, 0)
		}, ""},
		{"deleted by hand", func(h *handmade) {
			h.Faults = []Fault{{Proc: -1, Name: mutexName, Start: 99 * ms, End: 101 * ms}}
			h.redis(9, "HSET chaos:mutex hf-a:1 1", "PEXPIREAT chaos:mutex +1s")
			h.lease(0, mutexName, 10, 200)
			h.redis(100, "DEL chaos:mutex")
		}, ""},
		{"a TTL ends a hold, without a word in the file", func(h *handmade) {
			h.redis(9, "HSET chaos:mutex hf-a:1 1", "PEXPIREAT chaos:mutex +100ms")
			h.lease(0, mutexName, 10, 200)
		}, "claim without hold"},
		{"and a waiter waits on", func(h *handmade) {
			h.redis(9, "HSET chaos:mutex hf-a:1 1", "PEXPIREAT chaos:mutex +100ms")
			h.op(1, Lock, mutexName, Ended, 20, 900)
		}, "lost wake-up"},
		{"a key without TTL", func(h *handmade) {
			h.redis(9, "HSET chaos:mutex hf-a:1 1")
			h.redis(20, "DEL chaos:mutex")
		}, "ttl"},
		{"a queue that was empty and is made again without TTL", func(h *handmade) {
			h.redis(9, "RPUSH "+queue+" hf-a:1", "PEXPIREAT "+queue+" +1s")
			h.redis(10, "LREM "+queue+" 1 hf-a:1")
			h.redis(11, "RPUSH "+queue+" hf-b:1")
			h.redis(12, "DEL "+queue)
		}, "ttl"},
		{"a counter that goes back", func(h *handmade) {
			h.redis(9, "INCRBY redisson_lock_token:{chaos:fenced} 5")
			h.redis(10, "SET redisson_lock_token:{chaos:fenced} 5")
		}, "token"},
		{"an owner that counts", func(h *handmade) {
			h.redis(9, "HSET chaos:mutex hf-a:1 2", "PEXPIREAT chaos:mutex +10ms")
		}, "count"},
		{"no token", func(h *handmade) {
			h.held(fencedName, "hf-a:1", 9, 21)
			h.lease(0, fencedName, 10, 20)
		}, "token"},
		{"re-entry with a token of its own", func(h *handmade) {
			h.held(fencedName, "hf-a:1", 9, 41)
			a, b := h.lease(0, fencedName, 10, 40), h.lease(0, fencedName, 20, 0)
			h.unlock(b, OK, 30)
			a.Token, b.Token, b.Chain = 7, 8, a.Chain
		}, "token"},
		{"granted past the first in the queue", func(h *handmade) {
			h.redis(9, "HSET chaos:fair hf-a:1 1", "PEXPIREAT chaos:fair +1s", "RPUSH "+queue+" hf-a:2 hf-b:3", "PEXPIREAT "+queue+" +9s",
				"ZADD redisson_lock_timeout:{chaos:fair} +9s hf-a:2 +9s hf-b:3", "PEXPIREAT redisson_lock_timeout:{chaos:fair} +9s")
			h.redis(12, "DEL chaos:fair", "LREM "+queue+" 1 hf-b:3", "HSET chaos:fair hf-b:3 1", "PEXPIREAT chaos:fair +1s")
			h.redis(13, "DEL chaos:fair", "DEL "+queue)
		}, "order"},
		{"an owner comes back", func(h *handmade) {
			h.held(mutexName, "hf-a:1", 9, 21)
			h.lease(0, mutexName, 10, 20)
			h.held(mutexName, "hf-a:1", 30, 31)
		}, "resurrection"},
		{"a grant that was not heard is made again", func(h *handmade) {
			h.held(mutexName, "hf-a:1", 9, 21)
			h.held(mutexName, "hf-a:1", 30, 31)
		}, ""},
		{"an Unlock that did not", func(h *handmade) {
			h.held(mutexName, "hf-a:1", 9, 500)
			h.redis(490, "PEXPIREAT chaos:mutex +9s")
			h.aof[500] = ""
			h.lease(0, mutexName, 10, 20)
		}, "forsaken hold"},
		{"refused for no reason", func(h *handmade) {
			h.held(mutexName, "hf-a:1", 9, 21)
			h.op(0, TryLock, mutexName, Refused, 40, 41)
		}, "false refusal"},
		{"refused behind another call of the process", func(h *handmade) {
			h.held(mutexName, "hf-a:1", 9, 21)
			h.op(0, TryLock, mutexName, Refused, 40, 42)
			h.op(0, TryLock, mutexName, Ended, 35, 41)
		}, ""},
		{"refused as Redis may have had it", func(h *handmade) { // between two ticks
			h.held(mutexName, "hf-a:1", 9, 21)
			h.op(1, TryLock, mutexName, Refused, 21, 22)
		}, ""},
		{"free, seen as held", func(h *handmade) {
			h.held(mutexName, "hf-a:1", 9, 21)
			h.op(0, Peek, mutexName, OK, 40, 41)
		}, "false picture"},
		{"a loss that Unlock does not tell", func(h *handmade) {
			h.held(mutexName, "hf-a:1", 9, 1000)
			h.unlock(h.lease(0, mutexName, 10, 0), OK, 980)
		}, "hidden loss"},
		{"lost for no reason", func(h *handmade) {
			h.held(mutexName, "hf-a:1", 9, 1000)
			h.unlock(h.lease(0, mutexName, 10, 0), Lost, 970).Detail = "deadline"
		}, "lost without cause"},
		{"lost as the process was stopped", func(h *handmade) {
			h.held(mutexName, "hf-a:1", 9, 1000)
			h.unlock(h.lease(0, mutexName, 10, 0), Lost, 970).Detail = "deadline"
			h.Faults = []Fault{{Proc: 0, Kind: "stop a client", Start: 100 * ms, End: 900 * ms}}
		}, ""},
		{"before its limit", func(h *handmade) {
			h.held(mutexName, "hf-a:1", 9, 401)
			l := h.lease(0, mutexName, 10, 0)
			l.Limit = 500 * ms
			h.unlock(l, Lost, 400).Detail = maxHold
		}, "false loss"},
		{"told late", func(h *handmade) { h.op(0, told, mutexName, "", 500, 900) }, "told late"},
		{"told late, as the process did not run", func(h *handmade) {
			h.op(0, told, mutexName, "", 500, 900)
			h.Stalls = []Fault{{Kind: "stall", Proc: 0, Start: 600 * ms, End: 800 * ms}}
		}, ""},
		{"an error that no call may return", func(h *handmade) { h.op(0, Lock, mutexName, Failed, 10, 11) }, "odd error"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := byHand()
			tc.tell(h)
			if got := strings.Join(h.judge(), ", "); got != tc.want {
				t.Errorf("found %q, want %q", got, tc.want)
			}
		})
	}
}

// A write was executed after the tick before it was sent, and before the next one was acknowledged that was.
func TestTransactions_HaveTheirTimes(t *testing.T) {
	ticks := []Tick{{10, 12}, {20, never}, {30, 31}}
	tick := func(n int) []string { return []string{"SET", clockKey, fmt.Sprint(n)} }
	all := transactions([][]string{tick(0), {"HSET", "x", "a", "1"}, tick(1), {"MULTI"}, {"DEL", "x"}, {"DEL", "y"}, {"EXEC"}, tick(2), {"DEL", "z"}}, ticks)
	var got []string
	for _, w := range all {
		got = append(got, fmt.Sprint(len(w.commands), w.lo, w.hi == never || w.hi == 31))
	}
	if want := []string{"1 10 true", "2 20 true", "1 30 true"}; !slices.Equal(got, want) || all[1].hi != 31 || all[2].hi != never {
		t.Errorf("%q, want %q", got, want)
	}
}

// What is kept of a red run says what happened around a violation.
func TestReport_ShowsWhatWasFound(t *testing.T) {
	h := byHand()
	h.lease(0, mutexName, 10, 20)
	h.lease(1, mutexName, 15, 30)
	h.judge()
	r := Judge(h.History, Residue{Keys: []string{"stray"}, Goroutines: []string{"goroutine 7"}, Locks: 2, Subscriptions: []string{"c"}, ProbeFailed: []string{mutexName}})
	text := r.String() + r.Around(r.Violations[0])
	for _, s := range []string{"overlap", "left behind", "goroutines", "local locks", "connections", "not free in the end", "VIOLATION", "return  lock p0/1"} {
		if !strings.Contains(text, s) {
			t.Errorf("no %q in\n%s", s, text)
		}
	}
}
