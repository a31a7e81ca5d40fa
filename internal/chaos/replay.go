package chaos

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

// replay is the state of the server while its file is read.
type replay struct {
	*Truth
	ticks   []Tick
	upper   []int64 // by index of the command: what came before was executed by then
	lower   int64   // of the command in hand
	higher  int64
	live    map[string][]*Hold
	expires map[string]int64 // by key: 0 is none
	exists  map[string]bool
	touched map[string]bool // since MULTI: keys that might have no TTL
	multi   bool
	// twoSided are the read-write locks: their hash has a mode beside its owners, and
	// writers' fields end with ":write".
	twoSided map[string]bool
	counter  map[string]int64
	lines    map[string]*line              // by lock
	scores   map[string]map[string]float64 // of zsets, by key
}

// ReadTruth replays the commands of an append-only file.
func ReadTruth(aof [][]string, ticks []Tick) *Truth {
	r := &replay{
		Truth: &Truth{Holds: make(map[string][]*Hold), Turns: make(map[string]*Turns), Queued: make(map[string][]Span)},
		ticks: ticks, upper: upperBounds(aof, ticks),
		live: make(map[string][]*Hold), expires: make(map[string]int64), exists: make(map[string]bool),
		touched: make(map[string]bool), twoSided: make(map[string]bool), counter: make(map[string]int64),
		lines: make(map[string]*line), scores: make(map[string]map[string]float64),
	}
	for i, cmd := range aof {
		r.higher = r.upper[i]
		r.apply(cmd)
	}
	for _, live := range r.live {
		for _, h := range live {
			if end := h.ends(); end != 0 {
				h.End = Span{end, end}
			}
		}
	}
	r.Writes = len(aof)
	return r.Truth
}

// upperBounds walks backwards: a command was executed before the next tick was
// acknowledged.
func upperBounds(aof [][]string, ticks []Tick) []int64 {
	upper := make([]int64, len(aof))
	bound := int64(never)
	for i := len(aof) - 1; i >= 0; i-- {
		upper[i] = bound
		if t, ok := tickOf(aof[i], ticks); ok {
			bound = min(bound, t.Received)
		}
	}
	return upper
}

func tickOf(cmd []string, ticks []Tick) (Tick, bool) {
	if len(cmd) < 3 || cmd[1] != clockKey || !strings.EqualFold(cmd[0], "set") {
		return Tick{}, false
	}
	n, err := strconv.Atoi(cmd[2])
	if err != nil || n >= len(ticks) {
		return Tick{}, false
	}
	return ticks[n], true
}

func (r *replay) finding(rule, name, format string, args ...any) {
	r.Findings = append(r.Findings, Finding{rule, name, fmt.Sprintf(format, args...), r.lower})
}

func (r *replay) apply(cmd []string) {
	if t, ok := tickOf(cmd, r.ticks); ok {
		r.lower = max(r.lower, t.Sent)
		return
	}
	name := strings.ToLower(cmd[0])
	switch name {
	case "multi":
		r.multi = true
		return
	case "exec":
		r.multi = false
		r.settle()
		return
	case "select", "script": // Redis 6.2 has SCRIPT FLUSH in the file
		return
	}
	if len(cmd) < 2 {
		return
	}
	key := cmd[1]
	if lock, ok := lockOfQueue(key); ok {
		r.lineOf(lock).queued(name, cmd[2:])
	}
	switch name {
	case "hset", "hmset", "hsetnx", "hincrby":
		r.create(key)
		r.fields(key, name, cmd[2:])
	case "hdel":
		for _, f := range cmd[2:] {
			r.end(key, func(h *Hold) bool { return h.Owner == f }, "hdel")
		}
		if len(r.live[key]) == 0 {
			r.drop(key)
		}
	case "del", "unlink":
		for _, key := range cmd[1:] {
			how := "del"
			if e := r.expires[key]; e != 0 && e <= r.higher {
				how = "expiry"
			}
			r.end(key, func(*Hold) bool { return true }, how)
			r.drop(key)
		}
	case "pexpireat":
		r.expire(key, cmd[2])
	case "persist":
		r.expires[key] = 0
		r.touched[key] = true
	case "incr", "incrby", "set":
		r.end(key, func(*Hold) bool { return true }, "overwritten")
		if name == "set" {
			r.drop(key)
		}
		r.create(key)
		r.count(key, name, cmd[2:])
	case "zadd", "zrem", "zremrangebyscore":
		r.scored(key, name, cmd[2:])
	case "lpop", "rpop", "lrem":
		r.popped(key)
	default: // RPUSH and its like
		r.create(key)
	}
	if !r.multi {
		r.settle()
	}
}

// create notes that key exists. If its time was over, Redis says so with a DEL before.
func (r *replay) create(key string) {
	r.exists[key] = true
	r.touched[key] = true
}

func (r *replay) drop(key string) {
	delete(r.exists, key)
	delete(r.expires, key)
	delete(r.touched, key)
	delete(r.live, key)
	delete(r.twoSided, key)
}

// settle looks at what a script or a single command has left.
func (r *replay) settle() {
	for key := range r.touched {
		if r.exists[key] && r.expires[key] == 0 && !strings.HasPrefix(key, locktest.Tokens) {
			r.finding("ttl", key, "%s has no TTL", key)
		}
	}
	clear(r.touched)
	for lock, l := range r.lines {
		l.settle()
		r.standing(lock, len(l.ids) > 0)
	}
}

// standing notes whether a waiter stands in the queue of a lock from now on.
func (r *replay) standing(lock string, somebody bool) {
	spans := r.Queued[lock]
	last := len(spans) - 1
	switch open := last >= 0 && spans[last].Hi == never; {
	case somebody && !open:
		r.Queued[lock] = append(spans, Span{r.lower, never})
	case !somebody && open:
		spans[last].Hi = r.higher
	}
}

// fields follows the hash of a lock.
func (r *replay) fields(key, command string, args []string) {
	for i := 0; i+1 < len(args); i += 2 {
		owner, value := args[i], args[i+1]
		if owner == "mode" {
			r.twoSided[key] = true
			continue
		}
		if command == "hincrby" || value != "1" { // re-entry is counted in the process
			r.finding("count", key, "hold count %s %s of %s", command, value, owner)
		}
		if slices.ContainsFunc(r.live[key], func(h *Hold) bool { return h.Owner == owner }) {
			continue
		}
		h := &Hold{
			Name: key, Owner: owner, Write: !r.twoSided[key] || strings.HasSuffix(owner, ":write"), Start: Span{r.lower, r.higher},
			End: Span{never, never}, Expires: r.expires[key],
		}
		inside := false
		for _, o := range r.live[key] {
			inside = inside || ownerOf(o.Owner) == ownerOf(owner)
			if !h.shares(o) {
				r.finding("exclusion", key, "%s is let in beside %s", owner, o.Owner)
			}
		}
		r.live[key] = append(r.live[key], h)
		r.Holds[key] = append(r.Holds[key], h)
		if !inside { // a writer that becomes a reader overtakes no waiter
			r.lineOf(key).granted(r.turnsOf(key), owner, r.lower)
		}
	}
}

func (r *replay) end(key string, which func(*Hold) bool, how string) {
	r.live[key] = slices.DeleteFunc(r.live[key], func(h *Hold) bool {
		if !which(h) {
			return false
		}
		h.End, h.EndedBy = Span{r.lower, r.higher}, how
		if end := h.ends(); how == "expiry" || end != 0 && end < r.lower {
			// Redis stops showing a key when its time is over, and deletes it later.
			h.End, h.EndedBy = Span{end, end}, "expiry"
		}
		return true
	})
}

// right follows the key that a reader's right ends with, {<lock>}:<owner>:rwlock_timeout:1.
func (r *replay) right(key string) {
	rest, _, ok := strings.Cut(key, ":rwlock_timeout:")
	lock, owner, ok2 := strings.Cut(strings.TrimPrefix(rest, "{"), "}:")
	if !ok || !ok2 {
		return
	}
	for _, h := range r.live[lock] {
		if h.Owner == owner {
			h.Right = r.expires[key]
		}
	}
}

func (r *replay) turnsOf(lock string) *Turns {
	t := r.Turns[lock]
	if t == nil {
		t = new(Turns)
		r.Turns[lock] = t
	}
	return t
}

func (r *replay) expire(key, unixMS string) {
	ms, err := strconv.ParseInt(unixMS, 10, 64)
	if err != nil || !r.exists[key] {
		return
	}
	r.expires[key] = atWall(ms)
	r.right(key)
	for _, h := range r.live[key] {
		h.Expires = r.expires[key]
	}
}

// count follows a fencing counter.
func (r *replay) count(key, command string, args []string) {
	if !strings.HasPrefix(key, locktest.Tokens) {
		if command == "set" && len(args) > 2 { // SET key value PXAT ms
			r.expire(key, args[len(args)-1])
		}
		return
	}
	step := int64(1)
	if len(args) > 0 {
		n, err := strconv.ParseInt(args[0], 10, 64)
		if err != nil {
			r.finding("token", key, "%s %s", command, args[0])
			return
		}
		step = n
	}
	before := r.counter[key]
	if command == "set" {
		r.counter[key] = step
	} else {
		r.counter[key] += step
	}
	if r.counter[key] <= before {
		r.finding("token", key, "the counter goes from %d to %d", before, r.counter[key])
	}
}
