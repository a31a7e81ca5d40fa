package judge

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// Read reads what a server has of a lock. do executes a command; at is when a time of the server's clock is, in milliseconds.
func Read(do func(args ...string) any, l *Lock, now time.Duration, at func(millis int64) time.Duration) (st State) {
	fields, ok := []any(nil), true
	if l.Permits > 0 {
		st.Holders, st.Until = readPermits(do, l, now, at)
		if count, err := strconv.Atoi(fmt.Sprint(do("get", l.Name))); err == nil {
			st.Missing = l.Permits - count - int(do("zcard", wire.PermitSet(l.Name)).(int64))
		}
	} else {
		fields, ok = do("hgetall", l.Name).([]any)
	}
	if st.Wrong = !ok; len(fields) > 0 {
		if e := do("pexpiretime", l.Name).(int64); e > 0 {
			st.Until = at(e)
		}
		for i := 0; i < len(fields); i += 2 {
			id := fields[i].(string)
			if id == "mode" {
				continue
			}
			h := Holder{ID: id, Until: st.Until, Since: now}
			if l.Sides && !isWriter(id) {
				h.Until = 0
				if e := do("pexpiretime", "{"+l.Name+"}:"+id+":rwlock_timeout:1").(int64); e > 0 {
					h.Until = at(e)
				}
			}
			st.Holders = append(st.Holders, h)
		}
	}
	ids, _ := do("lrange", l.Keys.Queue.(string), "0", "-1").([]any)
	for _, id := range ids {
		st.Queue = append(st.Queue, id.(string))
		until, _ := do("zscore", l.Keys.Deadlines.(string), id.(string)).(float64)
		st.Kept = append(st.Kept, at(int64(until)))
	}
	return st
}

// readPermits reads the permits of a semaphore that have not ended, and when the first one does. What another request can collect
// is no one's.
func readPermits(do func(args ...string) any, l *Lock, now time.Duration, at func(millis int64) time.Duration) (permits []Holder, first time.Duration) {
	held, _ := do("zrange", wire.PermitSet(l.Name), "0", "-1").([]any)
	for _, permit := range held {
		ends, _ := do("zscore", wire.PermitSet(l.Name), permit.(string)).(float64)
		h := Holder{ID: PermitID(permit.(string)), Until: at(int64(ends)), Since: now}
		if h.Until <= now {
			continue
		}
		if permits = append(permits, h); first == 0 {
			first = h.Until
		}
	}
	return permits, first
}

// PermitID is the owner id that a permit would have alone.
func PermitID(permit string) string {
	id := hex.EncodeToString([]byte(permit))
	prefix, _ := wire.PermitOwner(id)
	number, _ := strconv.ParseUint(id[2*wire.PermitManager:], 16, 64)
	return fmt.Sprint(prefix, number)
}

// PermitsOf are the holders that the permits of a claim are, see State.
func PermitsOf(claim string) (ids []string) {
	at := strings.LastIndex(claim, ":")
	n, _ := strconv.Atoi(claim[at+1:])
	manager, first, _ := strings.Cut(claim[:at], ":")
	number, _ := strconv.Atoi(first)
	for i := range n {
		ids = append(ids, fmt.Sprint(manager, ":", number+i))
	}
	return ids
}
