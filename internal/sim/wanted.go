package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/judge"
)

// Holders that step aside when another owner wants their lock (Lease.Wanted).

// heed is what a holder knows of that.
type heed struct {
	wanted <-chan struct{} // nil: it has not asked
	asked  time.Duration   // when it has
	since  time.Duration   // when it had the lock, at the latest
	sought bool            // another caller has waited since
}

// meetsLocked is called when a caller asks for the lock, or has been answered: those who have it, and those who want it, meet another one. Readers want
// nothing of readers.
func (u *unit) meetsLocked(x *judge.Wait) {
	for _, y := range u.Waits {
		if x != y && !x.Once && !(x.Read && y.Read) {
			u.met[y] = u.w.now()
		}
		if x != y && !y.Once && !(x.Read && y.Read) {
			u.met[x] = u.w.now()
		}
	}
	for _, y := range u.Claims {
		c := y.Shell.(*claim)
		c.heed.sought = c.heed.sought || !x.Once && (!x.Read || c.Write || c.nested)
	}
}

// heedLocked is what the caller of x knows about waiters when its call returns.
func (u *unit) heedLocked(x *judge.Wait) heed {
	u.meetsLocked(x)
	since := u.w.now() - u.w.trips(4) // Redis has granted it, and a message may have been under way
	met, known := u.met[x]
	delete(u.met, x)
	return heed{since: since, sought: known && met >= since}
}

// heeds returns the channel of a claim whose worker looks at it.
func (k *worker) heeds(c *claim) <-chan struct{} {
	if !c.step.Heeds || c.Votes {
		return nil
	}
	wanted := c.lease.Wanted()
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	if c.heed.wanted == nil {
		c.heed.wanted, c.heed.asked = wanted, k.w.now()
	}
	return wanted
}

// stepsAside judges what a worker was told: that another owner has waited since it asked for the lock.
func (k *worker) stepsAside(c *claim) {
	w := k.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noteLocked("%s is wanted", c.Who)
	w.stats.StoodAside++
	behind := slices.ContainsFunc(c.units, func(u *unit) bool {
		return w.now() <= u.Excused || !c.p.calmLocked(u.s) || u.heardLocked(c.p) || slices.ContainsFunc(u.State.Holders, func(h judge.Holder) bool {
			return u.of(h.ID) == c.p && (len(u.State.Queue) > 0 || u.behind[h.ID] >= c.heed.since)
		})
	})
	if !c.heed.sought && !behind && !c.p.dead {
		w.judge.failLocked("wanted by no one", "%v: %s has it since %v", c.units[0], c.Who, c.Granted)
	}
}

// heardLocked reports whether the lock's channel was heard when a question of holder was answered that it knows the answer to by now: a process that
// has just waited counts as long as it hears that.
func (u *unit) heardLocked(holder *process) bool {
	for p, at := range u.left {
		if p != holder && at >= u.w.now()-u.w.trips(4) {
			return true
		}
	}
	return len(u.s.redis.Do("pubsub", "channels", "*:{"+u.Name+"}").([]any)) > 0
}

// unseenLocked finds holders that are not told that another owner wants the lock: by a caller of their process at once, by a message if the
// process hears that, and else within a second, in which it asks.
func (j *court) unseenLocked(u *unit) {
	seen := map[string]bool{}
	for _, x := range u.Claims {
		c := x.Shell.(*claim)
		if c.heed.wanted == nil || c.lease.Err() != nil || c.p.closed {
			continue
		}
		calm, hears := c.p.calmLocked(u.s) && j.w.now() > u.Excused, c.p.hearsLocked(u.s)
		select {
		case <-c.heed.wanted:
			calm = false // it is told
		default:
		}
		here := slices.ContainsFunc(u.Waits, func(x *judge.Wait) bool {
			return x.Process == c.p && !x.Once && !x.Unlocks && !x.Parted && !(x.Read && u.kind == RW && !c.Write)
		})
		from, bound := max(c.heed.asked, c.p.trouble, u.s.trouble), time.Second+j.w.trips(12)
		elsewhere := slices.ContainsFunc(u.State.Queue, func(id string) bool {
			since, known := u.Stands(id)
			if q := u.of(id); !known || q == nil || q == c.p || u.kind == RW && !c.Write && !strings.HasSuffix(id, ":write") {
				return false
			}
			from = max(from, since)
			return true
		})
		if c.plan.on(j.w.plan, u).Wanted && hears >= 0 {
			from, bound = max(from, hears), j.w.trips(12)
		}
		seen["here "+c.Who], seen[c.Who] = true, true
		d := j.Lasts(&u.Lock, "unseen here "+c.Who, calm && here, c.heed.asked, j.w.trips(1))
		e := j.Lasts(&u.Lock, "unseen "+c.Who, calm && elsewhere, from, bound)
		if d > j.w.trips(1) || e > bound {
			j.failLocked("unseen", "%v: another owner waits for what %s has, here for %v, elsewhere for %v", u, c.Who, d, e)
		}
	}
	u.ForgetAll("unseen ", seen)
}
