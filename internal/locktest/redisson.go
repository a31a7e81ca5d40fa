package locktest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// zAt is a place in a queue that is kept until t.
func zAt(t time.Time, id string) redis.Z {
	return redis.Z{Score: float64(t.UnixMilli()), Member: id}
}

// foreign is a client of Redisson, as far as Redis can see: the commands and the
// arithmetic that it uses for a fair lock, sent by hand.
type foreign struct {
	e    *Env
	id   string
	wait time.Duration // its patience
	sub  *redis.PubSub
}

// Foreign returns the n-th such client, which listens to the channel on which Redisson
// tells that waiter that it is next.
func (e *Env) Foreign(n int) *foreign {
	e.Helper()
	f := &foreign{e: e, id: fmt.Sprintf("0c2d0a52-7b0c-4f0e-9d3b-3f7a5f1c6e11:%d", n), wait: 300 * time.Second}
	f.sub = e.srv.Admin().Subscribe(bg, e.Channel(e.Key)+":"+f.id)
	e.Cleanup(func() { f.sub.Close() })
	redistest.Must(e, ErrOf(f.sub.Receive(bg)))
	return f
}

// evictStale is what each of Redisson's fair scripts begins with.
const evictStale = `
local now = tonumber(ARGV[3])
while true do
  local head = redis.call('lindex', KEYS[2], 0)
  local till = head and redis.call('zscore', KEYS[3], head)
  if not till or tonumber(till) > now then break end
  redis.call('lpop', KEYS[2])
  redis.call('zrem', KEYS[3], head)
end`

var foreignAcquire = redis.NewScript(evictStale + `
local me, wait = ARGV[1], tonumber(ARGV[2])
if redis.call('exists', KEYS[1]) == 0 and
    (redis.call('exists', KEYS[2]) == 0 or redis.call('lindex', KEYS[2], 0) == me) then
  redis.call('lpop', KEYS[2])
  redis.call('zrem', KEYS[3], me)
  for _, other in ipairs(redis.call('zrange', KEYS[3], 0, -1)) do
    redis.call('zincrby', KEYS[3], -wait, other)
  end
  redis.call('hset', KEYS[1], me, 1)
  redis.call('pexpire', KEYS[1], 30000)
  return -1
end
local ttl = redis.call('pttl', KEYS[1])
if redis.call('zscore', KEYS[3], me) then return math.max(0, ttl) end
local last = redis.call('lindex', KEYS[2], -1)
local base = ttl
if last and last ~= me and redis.call('zscore', KEYS[3], last) then
  base = redis.call('zscore', KEYS[3], last) - now
end
if redis.call('zadd', KEYS[3], base + wait + now, me) == 1 then redis.call('rpush', KEYS[2], me) end
return base`)

var foreignRelease = redis.NewScript(evictStale + `
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('del', KEYS[1])
local head = redis.call('lindex', KEYS[2], 0)
if head then redis.call('publish', KEYS[4] .. ':' .. head, 0) end
return 1`)

// What Redisson does when its time to wait is over: the waiter that is first then is not notified.
var foreignGiveUp = redis.NewScript(`
for _, other in ipairs(redis.call('lrange', KEYS[2], 0, -1)) do
  redis.call('zincrby', KEYS[3], -tonumber(ARGV[2]), other)
end
redis.call('zrem', KEYS[3], ARGV[1])
return redis.call('lrem', KEYS[2], 0, ARGV[1])`)

func (f *foreign) run(s *redis.Script) int64 {
	f.e.Helper()
	key := f.e.Key
	n, err := s.Run(bg, f.e.srv.Admin(), []string{key, "redisson_lock_queue:{" + key + "}", "redisson_lock_timeout:{" + key + "}",
		f.e.Channel(key)}, f.id, f.wait.Milliseconds(), time.Now().UnixMilli()).Int64()
	if err != nil {
		f.e.Errorf("as Redisson: %v", err)
	}
	return n
}

// Try asks for the lock and stands in the queue if it is not granted.
func (f *foreign) Try() bool { return f.run(foreignAcquire) == -1 }

// Release gives it back and tells the first in the queue.
func (f *foreign) Release() bool { return f.run(foreignRelease) == 1 }

// GiveUp leaves the queue.
func (f *foreign) GiveUp() bool { return f.run(foreignGiveUp) == 1 }

// Lock waits for the message, as Redisson does, and reports whether it came.
func (f *foreign) Lock(within time.Duration) bool {
	f.e.Helper()
	ctx, cancel := context.WithTimeout(bg, within)
	defer cancel()
	for !f.Try() {
		if _, err := f.sub.ReceiveMessage(ctx); err != nil {
			if !errors.Is(err, context.DeadlineExceeded) {
				f.e.Errorf("as Redisson: %v", err)
			}
			return false
		}
	}
	return true
}

// redissonScenarios: its fair waiters and Holdfast's stand in one queue.
var redissonScenarios = map[string]func(*Env){
	// A verdict that comes while we give way, but is older, does not make that last: the
	// next message is heard.
	"GivingWayEnds": func(e *Env) {
		release := e.HeldByRedisson(e.Key)
		m, p := e.Via(byMessage...)
		got := e.bystander(m)
		channels, ids := e.srv.Admin().PubSubChannels(bg, "holdfast_inbox:*").Val(), e.srv.Admin().LRange(bg, e.queue(), 0, -1).Val()
		if len(channels) != 1 || len(ids) != 1 {
			e.Fatalf("%q wait, with inboxes %q", ids, channels)
		}
		number := ids[0][strings.LastIndex(ids[0], ":")+1:]
		e.Eventually("Redisson is listened to", func() bool { return e.srv.NumSub(e.Channel(e.Key)) == 1 })
		for range 10 {
			gate := p.HoldReply(acquireOf(e.Key))
			e.srv.Admin().Publish(bg, e.Channel(e.Key), "0")
			gate.Wait(e)
			wakeups := m.Stats().Wakeups
			e.srv.Admin().Publish(bg, channels[0], "o "+number)
			for m.Stats().Wakeups == wakeups { // the race is lost in a few milliseconds
				runtime.Gosched()
				e.tick()
			}
			gate.Release()
			if e.Failed() {
				return
			}
		}
		release()
		e.MustUnlock(e.Soon("the waiter", got))
		e.Clean(m)
	},

	"MixedOrderWithRedisson": func(e *Env) {
		a, b := e.Manager(byMessage...), e.Manager(byMessage...)
		held := e.MustLock(e.Lock(e.Manager()))
		order := make(chan string, 6)
		ours := func(m *holdfast.Manager, name string) {
			before, _ := e.places()
			go func() {
				l := e.MustLock(e.Lock(m))
				order <- name
				e.MustUnlock(l)
			}()
			e.Queued(int64(len(before) + 1))
		}
		theirs := func(n int, name string) {
			f := e.Foreign(n)
			if f.Try() {
				e.Fatal("granted to Redisson while held")
			}
			go func() {
				if !f.Lock(patience) {
					e.Errorf("%s was not woken", name)
				}
				order <- name
				if !f.Release() {
					e.Errorf("%s had lost the lock", name)
				}
			}()
		}
		theirs(1, "their 1")
		ours(a, "our 2")
		ours(b, "our 3")
		theirs(2, "their 4")
		theirs(3, "their 5")
		ours(a, "our 6")
		start := time.Now()
		e.MustUnlock(held)
		var got []string
		for range 6 {
			got = append(got, <-order)
		}
		e.Logf("six hand-overs in %v", time.Since(start))
		if want := []string{"their 1", "our 2", "our 3", "their 4", "their 5", "our 6"}; !slices.Equal(got, want) {
			e.Errorf("order %q", got)
		}
		if d := time.Since(start); d > e.bound(2*prompt) { // one of Redisson's that is not told is waited for for 5 s
			e.Errorf("took %v", d)
		}
		e.Clean(a)
	},

	// One of Redisson's that gets the lock takes 300 s off every waiter's time.
	"SubtractionEvictsNobody": func(e *Env) {
		held := e.MustLock(e.Lock(e.Manager()))
		first, second, third := e.Foreign(1), e.Foreign(2), e.Foreign(3)
		first.Try()
		m := e.Manager()
		mine := e.Enqueue(m, 2)
		second.Try()
		third.Try()
		last := e.Enqueue(m, 1)
		before, _ := e.places()
		e.MustUnlock(held)
		if !first.Lock(5 * time.Second) {
			e.Fatal("Redisson's first was not woken")
		}
		third.run(foreignRelease) // not its holder: it only looks for stale heads
		if ids, kept := e.places(); !slices.Equal(ids, before[1:]) || kept != 5 {
			e.Errorf("the queue is\n%q (%d kept), it was\n%q", ids, kept, before)
		}
		first.Release()
		for _, got := range mine {
			e.MustUnlock(<-got)
		}
		for _, f := range []*foreign{second, third} {
			if !f.Lock(5 * time.Second) {
				e.Fatal("Redisson's was not woken")
			}
			f.Release()
		}
		e.MustUnlock(<-last[0])
		e.Clean(m)
	},

	// A waiter of Redisson gives up at the moment at which it is next. It got the message instead of Holdfast's waiter, and
	// sends none.
	"RedissonGivesUpWhenItIsNext": func(e *Env) {
		m := e.Manager(byMessage...)
		holder, next := e.Foreign(1), e.Foreign(2)
		if !holder.Try() || next.Try() {
			e.Fatal("Redisson's holder and waiter are not that")
		}
		got := e.bystander(m)
		ids, _ := e.places()
		e.Eventually("it listens to its own channel", func() bool { return e.srv.NumSub(e.Channel(e.Key)+":"+ids[1]) == 1 })
		if !holder.Release() || !next.GiveUp() {
			e.Fatal("Redisson's could not leave")
		}
		e.MustUnlock(e.Soon("the waiter", got))
		e.Clean(m)
	},

	// A waiter of Redisson that has died is overtaken: after five seconds, not 300.
	"DeadRedissonHeadIsOvertaken": func(e *Env) {
		held := e.MustLock(e.Lock(e.Manager()))
		dead := e.Foreign(1)
		dead.Try()
		dead.sub.Close()
		m, proxy := e.Via()
		got := e.Enqueue(m, 1)[0]
		proxy.Record()
		start := time.Now()
		e.MustUnlock(held)
		l := <-got
		e.Logf("overtaken after %v, %d commands", time.Since(start), proxy.Count(isCommand))
		redistest.WantMost(e, proxy.Count(isCommand), 50, "%d commands")
		e.MustUnlock(l)
		e.Clean(m)
	},
}

// countLines returns how many commands of the record contain all of parts.
func countLines(mon *redistest.Monitor, parts ...string) (n int) {
	for _, line := range mon.Lines() {
		if !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(line, p) }) {
			n++
		}
	}
	return n
}

// onlyTombstones reports whether nothing else is left on the server.
func onlyTombstones(e *Env) bool {
	return !slices.ContainsFunc(e.srv.Keys(), func(k string) bool { return !strings.HasPrefix(k, Tombstones) })
}
