package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/internal/judge"
)

// rlock is one of Redisson's locks, as far as Redis can see: its scripts, which javascripts.go has, and how it waits.
type rlock struct {
	p     *process
	name  string
	kind  Kind
	read  bool // rw: the read side
	id    string
	lease time.Duration
	asked time.Duration // when it asked the last time
}

// javaPatience is for how long one of Redisson's wants to wait for a fair lock, which keeps its place for so long.
const javaPatience = 2 * time.Second

func (l *rlock) eval(ctx context.Context, script string, keys []string, args ...any) (int64, error) {
	return l.p.java.Eval(ctx, script, keys, args...).Int64()
}

// try asks once. If another owner has the lock, it returns for how long that has it.
func (l *rlock) try(ctx context.Context) (got bool, ttl time.Duration, err error) {
	l.p.w.mu.Lock()
	l.asked = l.p.w.now()
	now := l.p.w.servers[0].clock() // Redisson's processes have their clocks set by the same source
	l.p.w.mu.Unlock()
	var n int64
	ms := l.lease.Milliseconds()
	switch {
	case l.kind == Fair:
		n, err = l.eval(ctx, rfairAcquire, []string{l.name, l.queue(), l.times()}, ms, l.id, javaPatience.Milliseconds(), now)
	case l.kind == RW && l.read:
		n, err = l.eval(ctx, rreadAcquire, []string{l.name, l.right()}, ms, l.id)
	case l.kind == RW:
		n, err = l.eval(ctx, rwriteAcquire, []string{l.name}, ms, l.id+":write")
	default:
		n, err = l.eval(ctx, rlockAcquire, []string{l.name}, ms, l.id)
	}
	return err == nil && n == -3, time.Duration(n) * time.Millisecond, err
}

// lock waits for the lock, for messages on its channel or the end of the holder's TTL.
func (l *rlock) lock(ctx context.Context) error {
	if got, _, err := l.try(ctx); got || err != nil {
		return err
	}
	messages := l.p.java.Subscribe(ctx, l.channel())
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
		if _, err := messages.ReceiveTimeout(ctx, min(max(ttl, time.Millisecond), patience/2)); err != nil { // it does not hear of the end of ctx
			if timeout := net.Error(nil); !errors.As(err, &timeout) || !timeout.Timeout() {
				return err
			}
		}
		time.Sleep(time.Nanosecond) // ctx ends at the same moment as the wait for a message
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// unlock gives the lock back, or the place in its queue.
func (l *rlock) unlock(ctx context.Context, held bool) {
	var err error
	switch {
	case l.kind == Fair && !held:
		_, err = l.eval(ctx, rfairFailed, []string{l.queue(), l.times()}, l.id, javaPatience.Milliseconds())
	case l.kind == RW && l.read:
		_, err = l.eval(ctx, rreadRelease, []string{l.name, l.channel(), l.right()}, l.id)
	case l.kind == RW:
		_, err = l.eval(ctx, rwriteRelease, []string{l.name, l.channel()}, l.id+":write")
	}
	switch {
	case l.kind == Fair:
		l.p.w.mu.Lock()
		now := l.p.w.servers[0].clock()
		l.p.w.mu.Unlock()
		_, err = l.eval(ctx, rfairRelease, []string{l.name, l.queue(), l.times(), l.shared()}, l.id, now)
	case l.kind != RW:
		_, err = l.eval(ctx, rlockRelease, []string{l.name, l.channel()}, l.id)
	}
	_ = err // what is not given back ends with its TTL
}

// javaClient is the client of a process of Redisson's; nil: p is none.
func (p *process) javaClient() *redis.Client {
	if p.slot >= len(p.w.plan.Processes) || !p.w.plan.Processes[p.slot].Java {
		return nil
	}
	return redis.NewClient(&redis.Options{
		Addr: p.w.servers[0].addr, PoolSize: ample, DialerRetries: 1, MaxRetries: -1,
		Dialer:                   func(ctx context.Context, _, _ string) (net.Conn, error) { return p.dial(ctx, p.w.servers[0]) },
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// javaSection is a section of one of Redisson's.
func (k *worker) javaSection(s *Step) {
	w, h := k.w, &k.p.locks[s.Lock]
	l := &rlock{p: k.p, name: h.plan.Name, kind: h.plan.Kind, read: s.Read, id: fmt.Sprintf("%s%d", k.p.prefix[0], k.n), lease: longestLease}
	ctx, cancel := k.limit(s)
	defer cancel()
	if h.plan.Kind == Fair && s.Limit == 0 { // its place may be behind one that is kept for long, of a process that is dead
		ctx, cancel = context.WithTimeout(k.p.ctx, javaPatience)
		defer cancel()
	}
	w.mu.Lock()
	x := &judge.Wait{Process: k.p, Who: k.String(), Since: w.now(), Read: s.Read, Once: s.Way == ByTry || h.plan.Kind == Fair}
	h.units[0].Waits = append(h.units[0].Waits, x)
	w.stats.Calls++
	w.noteLocked("%s %s %s, as Redisson%s", k.String(), s.Way, h.plan.Name, s.described())
	w.mu.Unlock()
	err := error(nil)
	if s.Way == ByTry {
		var got bool
		if got, _, err = l.try(ctx); err == nil && !got {
			err = errHeld
		}
	} else {
		err = l.lock(ctx)
	}
	k.inTurn()
	w.mu.Lock()
	h.units[0].Returns(x)
	w.noteLocked("%s: %v", k.String(), err)
	c := newClaim(k.p, nil, k.String(), !s.Read, h, s)
	c.Until = l.asked + min(s.Hold, longestLease/2)
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
	l.unlock(context.WithoutCancel(ctx), err == nil) // also if it is not known whether the lock is held
}

var errHeld = errors.New("held by another owner")
