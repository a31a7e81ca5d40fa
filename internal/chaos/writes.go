package chaos

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/judge"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// clockKey is what the run writes all the time: the number of a tick.
const clockKey = "chaos:clock"

// Tick is one write of the clock key. Whatever stands behind it in the server's file
// was executed after Sent; what stands before it, before Received.
type Tick struct{ Sent, Received int64 }

// written is what a script, or a command by itself, has written, at some time from lo to hi.
type written struct {
	commands [][]string
	lo, hi   int64
}

// transactions divides the server's file, and gives each part its time.
func transactions(aof [][]string, ticks []Tick) (all []*written) {
	var lo int64
	var open *written // between MULTI and EXEC
	for _, cmd := range aof {
		name := strings.ToLower(cmd[0])
		if n, ok := tickOf(name, cmd, ticks); ok {
			lo = max(lo, ticks[n].Sent)
			bound(all, ticks[n].Received)
			continue
		}
		switch {
		case name == "select" || name == "script": // Redis 6.2 has SCRIPT FLUSH in the file
		case name == "multi":
			open = &written{lo: lo, hi: never}
		case name == "exec":
			all = append(all, open)
			open = nil
		case open != nil:
			open.commands = append(open.commands, cmd)
		default:
			all = append(all, &written{commands: [][]string{cmd}, lo: lo, hi: never})
		}
	}
	return all
}

// bound says that all that was written before was executed by then.
func bound(all []*written, by int64) {
	for i := len(all) - 1; i >= 0 && all[i].hi > by; i-- {
		all[i].hi = by
	}
}

func tickOf(name string, cmd []string, ticks []Tick) (n int, ok bool) {
	if len(cmd) < 3 || cmd[1] != clockKey || name != "set" {
		return 0, false
	}
	n, err := strconv.Atoi(cmd[2])
	return n, err == nil && n < len(ticks)
}

// write has the server that stands in for the run's execute what its file has, and tells the judge what there is now. The clock of that server is
// never ahead: the time is the earliest at which the write can have happened.
func (t *trial) write(w *written) {
	var touched []*lock
	for _, cmd := range w.commands {
		for _, key := range keysOf(cmd) {
			if l := t.lockOf(key); l != nil && !slices.Contains(touched, l) {
				touched = append(touched, l)
			}
		}
	}
	for _, l := range touched {
		t.Look(&l.Lock)
	}
	for _, cmd := range w.commands {
		t.execute(cmd)
	}
	for _, cmd := range w.commands {
		for _, key := range keysOf(cmd) {
			if t.redis.Do("pttl", key) == int64(-1) && !strings.HasPrefix(key, locktest.Tokens) {
				t.Fail(nil, "ttl", "%s has none", key)
			}
		}
	}
	for _, l := range touched {
		before := l.State
		t.load(l, w.hi)
		t.Order(&l.Lock, &before, "a script")
		t.Look(&l.Lock)
	}
}

func (t *trial) execute(cmd []string) {
	name := strings.ToLower(cmd[0])
	token := len(cmd) > 1 && strings.HasPrefix(cmd[1], locktest.Tokens)
	counted := t.counter(cmd, token)
	if err, failed := t.redis.Do(cmd...).(error); failed {
		t.Fail(nil, "replay", "%q: %v", cmd, err)
	}
	switch after := t.counter(cmd, token); {
	case token && name != "del" && after <= counted:
		t.Fail(nil, "token", "the counter %s goes from %d to %d", cmd[1], counted, after)
	case name == "rpush":
		if l := t.lockOf(cmd[1]); l != nil {
			for _, id := range cmd[2:] {
				l.Comes(id)
			}
		}
	case name == "hincrby" || name == "hset" && slices.ContainsFunc(cmd[2:], isOwner) && slices.ContainsFunc(cmd[2:], isCount):
		t.Fail(nil, "count", "%q: re-entry is counted in the process", cmd)
	}
}

func isOwner(s string) bool { return strings.HasPrefix(s, "hf-") }

// isCount finds a number of holds that is not 1.
func isCount(s string) bool { n, err := strconv.Atoi(s); return err == nil && n != 1 }

func (t *trial) counter(cmd []string, token bool) int64 {
	if !token {
		return 0
	}
	text, _ := t.redis.Do("get", cmd[1]).(string)
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// load reads what the server has of a lock. What is gone, or ends sooner, may have been as before until hi.
func (t *trial) load(l *lock, hi int64) {
	st := judge.Read(t.redis.Do, &l.Lock, t.since(hi), func(ms int64) time.Duration { return t.since(ms*1e6 - t.h.Wall) })
	for _, old := range l.State.Holders {
		now := slices.IndexFunc(st.Holders, func(h judge.Holder) bool { return h.ID == old.ID })
		if now >= 0 && st.Holders[now].Until >= old.Until {
			continue
		}
		if old.Until > t.Now() {
			l.Promised = append(l.Promised, old)
			l.maybe = append(l.maybe, min(t.since(hi), old.Until))
		}
		if now < 0 && l.used[old.ID] != 0 {
			l.given = append(l.given, old.ID)
		}
	}
	t.Wrote(&l.Lock, st)
	for _, id := range l.given { // a caller had a lease of it, so it is not granted again
		t.GivenBack(&l.Lock, id)
	}
	l.given = l.given[:0]
	l.ends = 0
	for _, h := range st.Holders {
		if h.Until > 0 && (l.ends == 0 || h.Until < l.ends) {
			l.ends = h.Until
		}
	}
}

// keysOf are the keys that a command of the file writes.
func keysOf(cmd []string) []string {
	switch strings.ToLower(cmd[0]) {
	case "del", "unlink":
		return cmd[1:]
	}
	return cmd[1:2]
}

// lockOf returns the lock that a key belongs to; nil: none that is judged.
func (t *trial) lockOf(key string) *lock {
	if strings.HasPrefix(key, locktest.Tokens) || strings.HasPrefix(key, locktest.Tombstones) {
		return nil
	}
	if _, rest, tagged := strings.Cut(key, "{"); tagged {
		key, _, _ = strings.Cut(rest, "}")
	}
	if !strings.HasPrefix(key, "chaos:") {
		return nil
	}
	return t.lock(key)
}

// lock returns the lock of a name.
func (t *trial) lock(name string) *lock {
	l := t.locks[name]
	if l == nil {
		k := kindOf(name)
		sides, permits := false, 0
		if k != nil {
			sides, permits = k.Shared != nil, k.Permits
		}
		l = &lock{Lock: *judge.NewLock(name, name, sides, permits), kind: k, used: map[string]time.Duration{}, returned: map[int]int64{}}
		l.Most = mostPermits
		t.locks[name] = l
	}
	return l
}
