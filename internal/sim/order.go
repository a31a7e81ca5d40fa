package sim

import (
	"slices"
	"strings"
)

// orderLocked finds out whether a script has granted a lock to an owner although another one stood before it in the queue, whose place
// was kept and is there still.
func (j *judge) orderLocked(u *unit, before standing, script string) {
	if len(before.ids) == 0 || j.w.now() <= u.excused {
		return
	}
	after := u.standing()
	fields, _ := u.s.redis.Do("hkeys", u.name).([]any)
	for _, f := range fields {
		id := f.(string)
		if !strings.HasPrefix(id, "hf-") || before.held[id] || before.held[id+":write"] || u.stayed[id] { // or a downgrade
			continue
		}
		place := slices.Index(before.ids, id)
		if place < 0 {
			place = len(before.ids)
		}
		for _, earlier := range before.ids[:place] {
			if before.kept[earlier] && after.kept[earlier] && slices.Contains(after.ids, earlier) {
				j.failLocked("order", "%v: %s grants it to %s before %s", u, script, id, earlier)
			}
		}
	}
}
