package chaos

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// inAOF writes commands as the server's file has them, one per line; "tick" is the
// clock key, and "+500ms" the time in so many milliseconds from now.
func inAOF(lines string) (cmds [][]string) { return inAOFAt(time.Now(), lines) }

// inAOFAt has the times of lines begin at base.
func inAOFAt(base time.Time, lines string) (cmds [][]string) {
	n := 0
	for line := range strings.Lines(lines) {
		cmd := strings.Fields(line)
		if len(cmd) == 0 {
			continue
		}
		if cmd[0] == "tick" {
			cmd = []string{"SET", clockKey, fmt.Sprint(n)}
			n++
		}
		for i, arg := range cmd {
			if d, err := time.ParseDuration(arg); err == nil && arg[0] == '+' {
				cmd[i] = fmt.Sprint(base.Add(d).UnixMilli())
			}
		}
		cmds = append(cmds, cmd)
	}
	return cmds
}

// ticksFrom returns ticks ten milliseconds apart that take a millisecond each.
func ticksFrom(start int64, n int64) (ticks []Tick) {
	for i := range n {
		ticks = append(ticks, Tick{start + i*10*ms, start + (i*10+1)*ms})
	}
	return ticks
}

func TestReadTruth_HoldsAndTheirTimes(t *testing.T) {
	start := now()
	truth := ReadTruth(inAOF(`
		tick
		MULTI
		HSET x a:1 1
		PEXPIREAT x +60s
		EXEC
		tick
		HDEL x a:1
		tick
		MULTI
		HSET x b:1 1
		PEXPIREAT x +60s
		EXEC
		PEXPIREAT x +70s
		DEL x
		tick
	`), ticksFrom(start, 4))
	if len(truth.Findings) > 0 {
		t.Errorf("findings: %+v", truth.Findings)
	}
	holds := truth.Holds["x"]
	if len(holds) != 2 {
		t.Fatalf("%d holds, want 2", len(holds))
	}
	a, b := holds[0], holds[1]
	if a.Owner != "a:1" || a.Start != (Span{start, start + 11*ms}) || a.End != (Span{start + 10*ms, start + 21*ms}) || a.EndedBy != "hdel" {
		t.Errorf("the first hold: %+v", a)
	}
	if b.Owner != "b:1" || b.EndedBy != "del" || !b.Write {
		t.Errorf("the second hold: %+v", b)
	}
	free := truth.absent("x", func(h *Hold) bool { return h.prefix() == "a" })
	if want := []Span{{0, start}, {start + 21*ms, never}}; !slices.Equal(free, want) {
		t.Errorf("without a: %v, want %v", free, want)
	}
}

func TestReadTruth_ExpiryIsWhenItsTimeWasOver(t *testing.T) {
	base := time.Now()
	start := at(base)
	truth := ReadTruth(inAOFAt(base, `
		tick
		MULTI
		HSET x a:1 1
		PEXPIREAT x +5ms
		EXEC
		tick
		tick
		DEL x
		tick
	`), ticksFrom(start, 4))
	h := truth.Holds["x"][0]
	if h.EndedBy != "expiry" || h.End.Lo != h.End.Hi || h.End.Hi > start+8*ms || h.End.Lo < start {
		t.Errorf("%+v, want an end 5 ms after %d", h, start)
	}
}

// A tick whose reply was lost bounds nothing from above; the next one does.
func TestReadTruth_LostTick(t *testing.T) {
	ticks := ticksFrom(1000*ms, 3)
	ticks[1].Received = never
	truth := ReadTruth(inAOF("tick\nHSET x a:1 1\ntick\ntick"), ticks)
	if got, want := truth.Holds["x"][0].Start, (Span{1000 * ms, 1021 * ms}); got != want {
		t.Errorf("start %v, want %v", got, want)
	}
}

func TestReadTruth_Findings(t *testing.T) {
	for _, tc := range []struct {
		name, aof string
		want      []string
	}{
		{"no TTL", "HSET x a:1 1", []string{"ttl"}},
		{"the scripts are forgotten", "SCRIPT FLUSH", nil},
		{"TTL in the same transaction", "MULTI\nHSET x a:1 1\nPEXPIREAT x +1s\nEXEC", nil},
		{"TTL after the transaction", "MULTI\nHSET x a:1 1\nEXEC\nPEXPIREAT x +1s", []string{"ttl"}},
		{"TTL taken away", "MULTI\nHSET x a:1 1\nPEXPIREAT x +1s\nEXEC\nPERSIST x", []string{"ttl"}},
		{"a queue without TTL", "RPUSH redisson_lock_queue:{x} a:1", []string{"ttl"}},
		{"a queue with TTL, gone", "MULTI\nRPUSH q a:1\nPEXPIREAT q +1s\nEXEC\nDEL q", nil},
		{"a queue that was empty and is made again", "MULTI\nRPUSH redisson_lock_queue:{x} a:1\nPEXPIREAT redisson_lock_queue:{x} +1s\nEXEC\nLREM redisson_lock_queue:{x} 1 a:1\nRPUSH redisson_lock_queue:{x} b:1", []string{"ttl"}},
		{"a zset that was empty and is made again", "MULTI\nZADD z 1 a:1\nPEXPIREAT z +1s\nEXEC\nZREM z a:1\nZADD z 1 b:1", []string{"ttl"}},
		{"a zset emptied by time", "MULTI\nZADD z 1 a:1\nPEXPIREAT z +1s\nEXEC\nZREMRANGEBYSCORE z -inf 2\nZADD z 1 b:1", []string{"ttl"}},
		{"a zset that keeps a member", "MULTI\nZADD z 1 a:1 2 c:1\nPEXPIREAT z +1s\nEXEC\nZREM z a:1\nZADD z 1 b:1", nil},
		{"the fencing counter has none", "INCRBY redisson_lock_token:{x} 5\nINCRBY redisson_lock_token:{x} 1", nil},
		{"the fencing counter goes back", "INCRBY redisson_lock_token:{x} 5\nSET redisson_lock_token:{x} 5", []string{"token"}},
		{"two owners", "MULTI\nHSET x a:1 1\nHSET x b:1 1\nPEXPIREAT x +1s\nEXEC", []string{"exclusion"}},
		{"two readers", "MULTI\nHSET x mode read\nHSET x a:1 1\nHSET x b:1 1\nPEXPIREAT x +1s\nEXEC", nil},
		{"a reader beside a writer", "MULTI\nHSET x mode write\nHSET x a:1:write 1\nHSET x b:1 1\nPEXPIREAT x +1s\nEXEC", []string{"exclusion"}},
		{"a writer beside a reader", "MULTI\nHSET x mode read\nHSET x a:1 1\nHSET x b:1:write 1\nPEXPIREAT x +1s\nEXEC", []string{"exclusion"}},
		{"a writer who reads", "MULTI\nHSET x mode write a:1:write 1\nHSET x a:1 1\nPEXPIREAT x +1s\nEXEC", nil},
		{"an owner that counts", "MULTI\nHSET x a:1 1\nPEXPIREAT x +1s\nEXEC\nHINCRBY x a:1 1", []string{"count"}},
		{"a count below one", "MULTI\nHSET x a:1 0\nPEXPIREAT x +1s\nEXEC", []string{"count"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var rules []string
			for _, f := range ReadTruth(inAOF(tc.aof), nil).Findings {
				rules = append(rules, f.Rule)
			}
			if !slices.Equal(rules, tc.want) {
				t.Errorf("found %q, want %q", rules, tc.want)
			}
		})
	}
}

// The order in a queue: who leaves it has no claim to it, who stays has.
func TestReadTruth_Turns(t *testing.T) {
	const queue = "redisson_lock_queue:{x}"
	come := func(ids ...string) (lines string) {
		for _, id := range ids {
			lines += "RPUSH " + queue + " " + id + "\n"
		}
		return lines
	}
	grant := func(id string) string {
		return "MULTI\nLREM " + queue + " 1 " + id + "\nHSET x " + id + " 1\nPEXPIREAT x +60s\nEXEC\nHDEL x " + id + "\n"
	}
	for name, tc := range map[string]struct {
		aof  string
		want Turns
	}{
		"in order":             {come("a", "b", "c") + grant("a") + grant("b") + grant("c"), Turns{Waited: 3}},
		"out of order":         {come("a", "b", "c") + grant("c") + grant("b") + grant("a"), Turns{Waited: 3, Overtaken: 2, Most: 2}},
		"a newcomer":           {come("a", "b") + grant("n") + grant("a") + grant("b"), Turns{Waited: 2, Overtaken: 2, Most: 1}},
		"one gave up":          {come("a", "b") + "LREM " + queue + " 1 a\n" + grant("b") + come("a") + grant("a"), Turns{Waited: 2}},
		"one was passed over":  {come("a", "b") + "LPOP " + queue + "\n" + grant("b") + "LPUSH " + queue + " a\n" + grant("a"), Turns{Waited: 1}},
		"one is never granted": {come("a", "b") + grant("b"), Turns{Waited: 1}},
		"back behind another": {come("a", "b", "c") + "LPOP " + queue + "\nLINSERT " + queue + " AFTER b a\n" +
			grant("b") + grant("a") + grant("c"), Turns{Waited: 2}},
		"the queue was deleted": {come("a", "b") + "DEL " + queue + "\n" + come("b") + grant("b"), Turns{Waited: 1}},
	} {
		got := ReadTruth(inAOF("tick\n"+strings.ReplaceAll(tc.aof, "LREM", "lrem")+"tick\n"), ticksFrom(now(), 2)).Turns["x"]
		if got == nil || got.Waited != tc.want.Waited || got.Overtaken != tc.want.Overtaken || got.Most != tc.want.Most {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

// A waiter stands in the queue from the first that comes to the last that goes.
func TestReadTruth_Queued(t *testing.T) {
	start := now()
	truth := ReadTruth(inAOF(`
		tick
		RPUSH holdfast_rw_queue:{x} a
		tick
		MULTI
		LPOP holdfast_rw_queue:{x}
		RPUSH holdfast_rw_queue:{x} b
		EXEC
		tick
		DEL holdfast_rw_queue:{x}
		tick
		RPUSH holdfast_rw_queue:{x} a
		tick
	`), ticksFrom(start, 5))
	if got, want := truth.Queued["x"], []Span{{start, start + 31*ms}, {start + 30*ms, never}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A reader's hold ends with its own right, though others keep the hash.
func TestReadTruth_RightsOfReaders(t *testing.T) {
	truth := ReadTruth(inAOF(`
		tick
		MULTI
		HSET x mode read a:1 1
		PEXPIREAT x +60s
		SET {x}:a:1:rwlock_timeout:1 1 PXAT +0s
		EXEC
		tick
		MULTI
		HSET x mode read b:1 1
		PEXPIREAT x +70s
		SET {x}:b:1:rwlock_timeout:1 1 PXAT +70s
		EXEC
		tick
		DEL x
		tick
	`), ticksFrom(now(), 4))
	holds := truth.Holds["x"]
	if len(holds) != 2 || holds[0].EndedBy != "expiry" || holds[0].End.Hi >= holds[1].Start.Lo || holds[1].EndedBy != "del" {
		t.Errorf("holds %+v", holds)
	}
}
