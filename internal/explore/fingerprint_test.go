package explore

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/judge"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// A search visits one of the states that have the same fingerprint, so what is reachable only from another is never judged. Any two of
// these states have different futures.
func TestFingerprint_TellsStatesApart(t *testing.T) {
	plan := (&Plan{Name: "two locks", Locks: two(), Callers: []Caller{{}, {Process: 1}}}).complete()
	id := func(number int) string { return fmt.Sprintf("hf-00000000-0000-4000-8000-000000000000:%d", number) }
	expired := func(numbers ...int) func(w *World) {
		return func(w *World) {
			for _, n := range numbers {
				w.judge.expired[id(n)] = true
			}
		}
	}
	tokens := func(all ...uint64) func(w *World) {
		return func(w *World) {
			w.judge.at = w.now
			for n, t := range all {
				if t > 0 {
					w.judge.Token(w.judge.locks[n], &judge.Claim{Write: true}, t)
				}
			}
		}
	}
	text := func(command string, args ...string) func(w *World) {
		return func(w *World) { w.db = w.redis.raw(w.db, w.now, nil, command, nil, args).after }
	}
	const set = "redis.call('set', 'k', 'v', unpack(ARGV))"
	permit := func(process int) func(w *World) {
		return func(w *World) {
			text("redis.call('zadd', 'k', 1, ARGV[1])", wire.Permits(w.procs[process].says.Owners, 1001, 1))(w)
		}
	}
	states := map[string]func(w *World){
		"a claim":                         func(*World) {},
		"one hold has expired":            expired(1001),
		"another has":                     expired(1002),
		"both have":                       expired(1001, 1002),
		"a token":                         tokens(1, 0),
		"1000 tokens of the other lock":   tokens(0, 1000),
		"1128 tokens of the other lock":   tokens(0, 1128),
		"a token of each":                 tokens(1, 1),
		"a slow answer":                   func(w *World) { w.judge.slow = true },
		"a deleted lock":                  func(w *World) { w.judge.deleted = true },
		"another subscription":            func(w *World) { w.procs[0].session++ },
		"a message for one process":       func(w *World) { w.procs[0].mail = append(w.procs[0].mail, mail{-1, "0"}) },
		"one for the other":               func(w *World) { w.procs[1].mail = []mail{{-1, "0"}} },
		"one of another claim":            func(w *World) { w.procs[0].mail = append(w.procs[0].mail, mail{-1, id(1002)}) },
		"a wait has failed":               func(w *World) { w.callers[0].why = new(lock.Verdict) },
		"a key without TTL":               text(set),
		"one with 61 ms":                  text(set, "px", "61"), // 'z' as a varint
		"one with 62 ms":                  text(set, "px", "62"),
		"a list":                          text("redis.call('rpush', 'k', 'a', 'b')"),
		"a permit":                        permit(0),
		"a permit of the other process":   permit(1),
		"permits of which some were held": func(w *World) { w.judge.locks[0].Permits = 1 },
		"and beside them others":          func(w *World) { w.judge.locks[0].Permits, w.judge.locks[0].Beside = 1, 1 },
		"their number was set":            func(w *World) { w.sets, w.cut = 1, w.now },
		"it was set before":               func(w *World) { w.sets, w.cut = 1, epoch },
		"two lists":                       text("redis.call('rpush', 'k', 'a') redis.call('rpush', 'l', 'b')"),
	}
	after := func(change func(w *World)) fingerprint {
		w := newWorld(plan, newRedis())
		w.now = w.now.Add(time.Second)
		w.callers[0].phase = waiting
		w.procs[0].mail = []mail{{-1, id(1001)}}
		change(w)
		return w.fingerprint()
	}
	seen := map[fingerprint]string{}
	for name, change := range states {
		at := after(change)
		if other, known := seen[at]; known {
			t.Errorf("%q and %q have one fingerprint", name, other)
		}
		seen[at] = name
	}
	if after(func(*World) {}) != after(func(w *World) { w.procs[0].mail[0].payload = id(1002) }) {
		t.Error("the number of a claim is written, and not only its rank")
	}
}
