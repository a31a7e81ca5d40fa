package judge

import "time"

// Read reads what a server has of a lock, whose queue and the times of the places in it have these keys. do executes a command; at is when a time of the
// server's clock is, in milliseconds.
func Read(do func(args ...string) any, l *Lock, queue, times string, now time.Duration, at func(millis int64) time.Duration) (st State) {
	fields, ok := do("hgetall", l.Name).([]any)
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
	ids, _ := do("lrange", queue, "0", "-1").([]any)
	for _, id := range ids {
		st.Queue = append(st.Queue, id.(string))
		until, _ := do("zscore", times, id.(string)).(float64)
		st.Kept = append(st.Kept, at(int64(until)))
	}
	return st
}
