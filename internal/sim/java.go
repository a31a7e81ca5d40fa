package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// rlock is Redisson's RLock, as far as Redis can see: its scripts, and how it waits.
type rlock struct {
	client *redis.Client
	name   string
	id     string
	lease  time.Duration
}

const (
	rlockAcquire = `-- rlock_acquire.lua:
if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  redis.call('hset', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return -3
end
return redis.call('pttl', KEYS[1])`
	rlockRelease = `-- rlock_unlock.lua:
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return 0 end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], ARGV[1])
return 1`
)

func (l *rlock) channel() string { return "redisson_lock__channel:{" + l.name + "}" }

// try asks once. If another owner has the lock, it returns for how long that has it.
func (l *rlock) try(ctx context.Context) (got bool, ttl time.Duration, err error) {
	n, err := l.client.Eval(ctx, rlockAcquire, []string{l.name}, l.lease.Milliseconds(), l.id).Int64()
	return err == nil && n == -3, time.Duration(n) * time.Millisecond, err
}

// lock waits for the lock, for messages on its channel or the end of the holder's TTL.
func (l *rlock) lock(ctx context.Context) error {
	if got, _, err := l.try(ctx); got || err != nil {
		return err
	}
	messages := l.client.Subscribe(ctx, l.channel())
	defer messages.Close()
	if _, err := messages.ReceiveTimeout(ctx, longestLease); err != nil {
		return err
	}
	for {
		got, ttl, err := l.try(ctx)
		switch {
		case got:
			return nil
		case err != nil:
			return err
		}
		if _, err := messages.ReceiveTimeout(ctx, max(ttl, time.Millisecond)); err != nil {
			if timeout := net.Error(nil); !errors.As(err, &timeout) || !timeout.Timeout() {
				return err
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func (l *rlock) unlock(ctx context.Context) error {
	return l.client.Eval(ctx, rlockRelease, []string{l.name, l.channel()}, "0", l.id).Err()
}

// javaClient is the client of a process of Redisson's; nil: p is none.
func (p *process) javaClient() *redis.Client {
	if p.slot >= len(p.w.plan.Processes) || !p.w.plan.Processes[p.slot].Java {
		return nil
	}
	return redis.NewClient(&redis.Options{
		Addr: p.w.servers[0].addr, DialerRetries: 1, MaxRetries: -1,
		Dialer:                   func(ctx context.Context, _, _ string) (net.Conn, error) { return p.dial(ctx, p.w.servers[0]) },
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// javaSection is a section of one of Redisson's.
func (k *worker) javaSection(s *Step) {
	w, h := k.w, &k.p.locks[s.Lock]
	l := &rlock{client: k.p.java, name: h.plan.Name, id: fmt.Sprintf("%s%d", k.p.prefix[0], k.n), lease: longestLease}
	ctx, cancel := k.limit(s)
	defer cancel()
	w.mu.Lock()
	x := &wait{p: k.p, who: k.String(), since: w.now(), once: true}
	h.units[0].waits = append(h.units[0].waits, x)
	w.stats.Calls++
	w.noteLocked("%s %s %s, as Redisson%s", k.String(), s.Way, h.plan.Name, s.described())
	w.mu.Unlock()
	sent, err := w.now(), error(nil)
	if s.Way == ByTry {
		var got bool
		if got, _, err = l.try(ctx); err == nil && !got {
			err = errHeld
		}
	} else {
		err = l.lock(ctx)
		sent = max(sent, w.now()-2*w.plan.slowest()-k.p.slowest) // the last request's
	}
	w.mu.Lock()
	h.units[0].drop(x)
	w.noteLocked("%s: %v", k.String(), err)
	c := &claim{p: k.p, who: k.String(), owner: k.String(), write: true, units: h.units, plan: h.plan, until: sent + s.Hold}
	if err == nil && !k.p.dead {
		w.stats.Grants++
		w.judge.grantedLocked(c, false)
	}
	w.mu.Unlock()
	if err == nil {
		k.pause(min(s.Hold, longestLease/2))
		w.mu.Lock()
		w.judge.endsLocked(c)
		w.noteLocked("%s unlocks, as Redisson", k.String())
		w.mu.Unlock()
	}
	_ = l.unlock(context.WithoutCancel(ctx)) // also if nobody knows whether it has it
}

var errHeld = errors.New("held by another owner")
