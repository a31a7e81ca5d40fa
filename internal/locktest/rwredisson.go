package locktest

import (
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

// redisson is one thread of a Redisson client at work on a read-write lock: what its
// scripts do to the keys, and say. It does not know of a queue.
type redisson struct {
	e      *Env
	client redis.UniversalClient
	owner  string
	ttl    time.Duration
}

func (e *Env) redisson(thread int) *redisson {
	const uuid = "5c6a0a3c-0f5e-4a37-9f1f-0d8f9c6b1a11:"
	return &redisson{e, e.Server().Admin(), uuid + strconv.Itoa(thread), time.Minute}
}

func (r *redisson) run(script string, args ...any) int64 {
	r.e.Helper()
	n, err := redis.NewScript(script).Run(bg, r.client, []string{r.e.Key, r.e.Channel(r.e.Key)},
		append([]any{r.owner, r.ttl.Milliseconds(), "{" + r.e.Key + "}:" + r.owner + ":rwlock_timeout:"}, args...)...).Int64()
	if err != nil {
		r.e.Fatal(err)
	}
	return n
}

// tryRead takes the read side if no other client writes.
func (r *redisson) tryRead() bool {
	r.e.Helper()
	return r.run(`
local mode = redis.call('hget', KEYS[1], 'mode')
if mode == 'write' and redis.call('hexists', KEYS[1], ARGV[1] .. ':write') == 0 then return 0 end
if not mode then redis.call('hset', KEYS[1], 'mode', 'read') end
local n = redis.call('hincrby', KEYS[1], ARGV[1], 1)
redis.call('set', ARGV[3] .. n, 1, 'px', ARGV[2])
redis.call('pexpire', KEYS[1], math.max(redis.call('pttl', KEYS[1]), ARGV[2]))
return 1`) == 1
}

// tryWrite takes the write side if no other client is in.
func (r *redisson) tryWrite() bool {
	r.e.Helper()
	return r.run(`
if redis.call('exists', KEYS[1]) == 1 then return 0 end
redis.call('hset', KEYS[1], 'mode', 'write', ARGV[1] .. ':write', 1)
redis.call('pexpire', KEYS[1], ARGV[2])
return 1`) == 1
}

// unread leaves the read side: the hash then lasts as long as the longest right of the
// readers it counts, and goes, with a message, if there is none.
func (r *redisson) unread() {
	r.e.Helper()
	if r.run(`
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end
local n = redis.call('hincrby', KEYS[1], ARGV[1], -1)
if n == 0 then redis.call('hdel', KEYS[1], ARGV[1]) end
redis.call('del', ARGV[3] .. (n + 1))
local longest, fields = -3, redis.call('hgetall', KEYS[1])
for i = 1, #fields, 2 do
  for k = 1, tonumber(fields[i + 1]) or 0 do
    longest = math.max(longest, redis.call('pttl', ARGV[4] .. fields[i] .. ':rwlock_timeout:' .. k))
  end
end
if longest > 0 then redis.call('pexpire', KEYS[1], longest) return 1 end
if redis.call('hget', KEYS[1], 'mode') == 'write' then return 1 end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], '0')
return 1`, "{"+r.e.Key+"}:") != 1 {
		r.e.Error("Redisson's reader does not hold the lock")
	}
}

// unwrite leaves the write side; what it reads it keeps.
func (r *redisson) unwrite() {
	r.e.Helper()
	if r.run(`
if redis.call('hdel', KEYS[1], ARGV[1] .. ':write') == 0 then return 0 end
if redis.call('hlen', KEYS[1]) > 1 then redis.call('hset', KEYS[1], 'mode', 'read') return 1 end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], '1')
return 1`) != 1 {
		r.e.Error("Redisson's writer does not hold the lock")
	}
}

// told subscribes to the lock's channel as Redisson's waiters do and returns a function
// that waits for a message.
func (r *redisson) told() (wait func(want string), done func()) {
	sub := r.client.Subscribe(bg, r.e.Channel(r.e.Key))
	if _, err := sub.Receive(bg); err != nil {
		r.e.Fatal(err)
	}
	return func(want string) {
		r.e.Helper()
		select {
		case m := <-sub.Channel():
			if m.Payload != want {
				r.e.Errorf("message %q, want %q", m.Payload, want)
			}
		case <-time.After(patience):
			r.e.Errorf("no message, want %q", want)
		}
	}, func() { sub.Close() }
}

// hears waits until n processes are subscribed to the lock's channel.
func (e *Env) hears(n int64) {
	e.Helper()
	e.Eventually("subscribed to Redisson's channel", func() bool { return e.srv.NumSub(e.Channel(e.Key)) == n })
}

var rwRedissonScenarios = map[string]func(*Env){
	// Redisson's writer keeps Holdfast's readers out; its release notifies all of them, of all processes.
	"WriterOfRedisson": func(e *Env) {
		java := e.redisson(1)
		for _, ours := range []bool{true, false} { // readers, then a writer
			if !java.tryWrite() {
				e.Fatal("not free")
			}
			var got []<-chan *holdfast.Lease
			var all []*holdfast.Manager
			for range 2 {
				m := e.Manager(byMessage...)
				l := holdfast.Locker(e.RW(m).RLocker())
				if !ours {
					l = e.RW(m)
				}
				e.Busy(l.TryLock)
				got, all = append(got, e.Locking(l)), append(all, m)
			}
			e.hears(2)
			java.unwrite()
			for _, g := range got {
				l := e.Soon("ours", g)
				if java.tryWrite() {
					e.Error("Redisson's writer beside ours")
				}
				if java.tryRead() != ours {
					e.Errorf("Redisson's reader comes in: %v", !ours)
				}
				if ours {
					java.unread()
				}
				e.MustUnlock(l)
			}
			for _, m := range all {
				e.Clean(m, Tombstones)
			}
		}
	},

	// Readers of both share the lock; the last to leave lets the writer of the other in.
	"ReadersOfBoth": func(e *Env) {
		one, two := e.redisson(1), e.redisson(2)
		two.ttl = 30 * time.Second
		m, w := e.Manager(), e.Manager(byMessage...)
		for _, first := range []bool{true, false} { // Holdfast's reader leaves first, or last
			ours := e.MustRLock(e.RW(m))
			if !one.tryRead() || !two.tryRead() || !two.tryRead() {
				e.Fatal("Redisson's readers are kept out")
			}
			e.Busy(e.RW(w).TryLock)
			if one.tryWrite() {
				e.Error("Redisson's writer beside readers")
			}
			one.unread()
			_, hash := e.rightAndHash(e.Key)
			if hash < 20*time.Second {
				e.Errorf("the hash has %v left", hash)
			}
			writer := e.InQueue(1, e.RW(w))
			if first {
				e.MustUnlock(ours)
				if _, hash := e.rightAndHash(e.Key); hash < 20*time.Second || hash > two.ttl {
					e.Errorf("the hash has %v left, Redisson's reader %v", hash, two.ttl)
				}
				e.hears(1)
				two.unread()
				two.unread()
			} else {
				two.unread()
				two.unread()
				if !ours.Valid() || len(e.Holders()) != 1 {
					e.Errorf("ours was disturbed: %v", e.Holders())
				}
				e.MustUnlock(ours)
			}
			e.MustUnlock(e.Soon("our writer", writer))
		}
		e.Clean(m)
		e.Clean(w, Tombstones)
	},

	// Holdfast's reader leaves, and a reader of Redisson stays that came when Holdfast's writer stood in the queue: the
	// writer is told to listen to Redisson's channel.
	"ReaderOfRedissonStaysWhenOursLeaves": func(e *Env) {
		ours := e.MustRLock(e.RW(e.Manager(byMessage...)))
		w := e.Manager(byMessage...)
		writer := e.standby(e.RW(w))
		java := e.redisson(1)
		if !java.tryRead() {
			e.Fatal("Redisson's reader is kept out")
		}
		e.MustUnlock(ours)
		e.hears(1)
		java.unread()
		e.MustUnlock(e.Soon("our writer", writer))
		e.Clean(w, Tombstones)
	},

	// What Redisson's waiters are told: 0 by the last reader, 1 and 0 by a writer, also when
	// readers of Holdfast come in, and its readers may join them.
	"MessagesForRedisson": func(e *Env) {
		m, other := e.Manager(), e.Manager()
		wait, done := e.redisson(1).told()
		e.MustUnlock(e.MustRLock(e.RW(m)))
		wait("0")
		e.MustUnlock(e.MustLock(e.RW(m)))
		wait("1")
		wait("0")
		held := e.MustLock(e.RW(m))
		reader := e.InQueue(1, e.RW(other).RLocker())
		e.MustUnlock(held)
		wait("1")
		wait("0")
		r := e.Soon("our reader", reader)
		java := e.redisson(2)
		if !java.tryRead() {
			e.Error("Redisson's reader is kept out")
		}
		java.unread()
		e.MustUnlock(r)
		wait("0")
		held = e.MustLock(e.RW(m))
		if _, err := m.ForceUnlock(bg, e.Key); err != nil {
			e.Error(err)
		}
		wait("1")
		wait("0")
		e.WantErr(held.Unlock(bg), holdfast.ErrLeaseLost)
		done()
		e.Clean(m, Tombstones)
		e.Clean(other, Tombstones)
	},

	// A reader of Redisson that died leaves its field behind. It keeps no writer out once its
	// right is over and Holdfast's reader leaves.
	"DeadReaderOfRedisson": func(e *Env) {
		java := e.redisson(1)
		java.ttl = 200 * time.Millisecond
		m := e.Manager(holdfast.WithLease(time.Hour)) // nothing of it is over by itself
		ours := e.MustRLock(e.RW(m))
		java.tryRead()
		e.Eventually("its right ends", func() bool { return len(e.Rights()) == 1 })
		if len(e.Holders()) != 2 {
			e.Errorf("holders %v", e.Holders())
		}
		writer := e.InQueue(1, e.RW(e.Manager()))
		e.Passes(ours, "the writer", writer)
		e.Clean(m)
	},

	// Redisson downgrades without a message; Holdfast's waiters find out by asking.
	"DowngradeOfRedisson": func(e *Env) {
		java := e.redisson(1)
		if !java.tryWrite() || !java.tryRead() {
			e.Fatal("not free")
		}
		m := e.Manager()
		reader := e.Locking(e.RW(m).RLocker())
		e.hears(1)
		java.unwrite()
		r := e.Soon("our reader", reader)
		e.Busy(e.RW(m).TryLock)
		e.MustUnlock(r)
		if len(e.Holders()) != 1 || len(e.Rights()) != 1 {
			e.Errorf("holders %v, rights %v", e.Holders(), e.Rights())
		}
		java.unread()
		e.Clean(m)
	},
}
