package explore

import (
	"math"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/judge"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/vredis"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// What worlds of semaphores have beside others.

// semaphore returns the one that has a key of its own; nil: none has.
func (w *World) semaphore(key string) *Name {
	for i := range w.plan.Locks {
		if l := &w.plan.Locks[i]; l.Permits > 0 && (key == l.Name || key == wire.PermitSet(l.Name)) {
			return l
		}
	}
	return nil
}

// mayStay reports whether a key is of a semaphore, and has its number, or nothing but permits that the next request collects.
func (w *World) mayStay(k vredis.Key) bool {
	return w.semaphore(k.Name) != nil && (k.Kind == "string" || slices.Max(k.Scores) <= float64(w.now.UnixMilli()))
}

// endsOf are when the permits of a semaphore end that are not available.
func (w *World) endsOf(l *Name) (millis []float64) {
	for _, k := range w.db.Keys(w.now) {
		if k.Name == wire.PermitSet(l.Name) {
			millis = k.Scores
		}
	}
	return millis
}

// suffices reports whether a semaphore has as many permits as the first one wants that stands in its queue, or else each caller that
// waits. It counts no caller that waits for more permits than there are, or were: it asks at its next poll, and those of its process that have come
// later with it. It does not count what one of Redisson's has had: that is announced on a channel that a process hears only if it was refused meanwhile.
func (j *court) suffices(l *judge.Lock) bool {
	fewest, want := slices.Min(append(j.w.plan.Sets[:j.w.sets:j.w.sets], l.Permits)), 0
	waits := func(c *caller, than int) bool { return c.phase == waiting && c.Permits > than }
	if slices.ContainsFunc(j.w.callers, func(c *caller) bool { return c.Java && c.phase != outside && c.phase != waiting }) {
		return false
	}
	for _, c := range j.w.callers {
		if waits(c, 0) && !slices.ContainsFunc(j.w.callers, func(o *caller) bool { return o.Process == c.Process && waits(o, fewest) }) {
			want = max(want, c.Permits)
		}
	}
	if len(l.State.Queue) > 0 {
		want = len(judge.PermitsOf(l.State.Queue[0]))
	}
	return want > 0 && want <= l.Permits-len(l.State.Holders)
}

// isCut reports whether a caller waits for more permits than there are, until the number is set again.
func (w *World) isCut() bool {
	return w.sets > 0 && w.sets < len(w.plan.Sets) && slices.ContainsFunc(w.callers, func(c *caller) bool {
		return c.phase == waiting && c.Permits > w.judge.locks[0].Permits
	})
}

// cutFor is for how long at most: some polls.
const cutFor = 3 * time.Second

// setPermits is SetPermits, which takes no time.
func (w *World) setPermits() {
	n := w.plan.Sets[w.sets]
	w.sets, w.cut = w.sets+1, w.now
	w.judge.locks[0].SetPermits(n)
	keys := wire.SemaphoreKeys(w.plan.Locks[0].Name)
	w.run(protocol.PermitSet, protocol.PermitSet.Args(len(keys), append(keys, n, "publish", protocol.Offer(lock.MaxClaim.Milliseconds(), 1, true))...))
}

// nextEnd is when the first permit ends that has not. One of Redisson's has its own for longer than a world lasts.
func (w *World) nextEnd() (at time.Time, some bool) {
	first, last := math.Inf(1), float64(w.now.Add(most).UnixMilli())
	for i := range w.plan.Locks {
		for _, end := range w.endsOf(&w.plan.Locks[i]) {
			if end > float64(w.now.UnixMilli()) && end < last {
				first = min(first, end)
			}
		}
	}
	return time.UnixMilli(int64(first)), !math.IsInf(first, 1)
}

// What a client of Redisson's RPermitExpirableSemaphore does, which takes one permit, for ten minutes. An earlier client has
// set how many permits there are.
const (
	javaTakePermit = `redis.call('set', KEYS[1], ARGV[3], 'nx')
local ended = redis.call('zrangebyscore', KEYS[3], '0', ARGV[2], 'limit', '0', '1')
if #ended > 0 then
  redis.call('zrem', KEYS[3], unpack(ended))
  if redis.call('incrby', KEYS[1], #ended) > 0 then redis.call('publish', KEYS[2], redis.call('get', KEYS[1])) end
end
if tonumber(redis.call('get', KEYS[1])) < 1 then return 0 end
redis.call('decrby', KEYS[1], '1')
redis.call('zadd', KEYS[3], ARGV[2] + 600000, ARGV[1])
return -3`
	javaGivePermit = `if redis.call('zrem', KEYS[3], ARGV[1]) == 0 then return 0 end
redis.call('publish', KEYS[2], redis.call('incrby', KEYS[1], '1'))
return 1`
	javaPermit = "one of Redissons!"
)

// isAvailable reports whether one of Redisson's, which waits until the first permit ends, can get one.
func (w *World) isAvailable(l *Name) bool {
	for _, k := range w.db.Keys(w.now) {
		if k.Name == l.Name && k.Text > "0" {
			return true
		}
	}
	return slices.ContainsFunc(w.endsOf(l), func(end float64) bool { return end <= float64(w.now.UnixMilli()) })
}
