package locktest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// limited returns a client of a user who may do everything at first, and a function that
// changes what the user may do.
func (e *Env) limited() (client redis.UniversalClient, allow func(rules ...any)) {
	e.Helper()
	opt, allow := limitedOptions(e, e.Server())
	return e.client(opt), allow
}

// refusalScenarios are about a Redis that refuses or denies something in the middle of what a
// script does, or while locks are held or waited for.
var refusalScenarios = map[string]func(*Env){
	// S1: a late copy of an acquire that may not set a TTL does not end the hold that another copy has begun.
	"DeniedCopyEndsNothing": func(e *Env) {
		e.copiesWithoutRights(func(m *holdfast.Manager, name string) holdfast.Locker { return e.kind.Lock(m, name) })
	},

	// S7: a script that may not read a TTL has not taken the lock by then. A caller that waits for
	// better times would keep it without TTL.
	"DeniedTTLLeavesNoLockWithoutOne": func(e *Env) {
		client, allow := e.limited()
		allow("-pttl")
		m := e.ManagerOn(client)
		several, err := holdfast.NewMulti(m.Mutex("several:a"), m.Mutex("several:b"))
		redistest.Must(e, err)
		for _, l := range []holdfast.Locker{e.Lock(m), m.RWMutex(e.Key + ":rw").RLocker(), several} {
			ctx, cancel := context.WithCancel(bg)
			ended := make(chan *holdfast.Lease, 1)
			before := m.Stats().Troubles
			go func() { lease, _ := l.Lock(ctx); ended <- lease }()
			var lease *holdfast.Lease
			e.Eventually("it is taken, or denied", func() bool {
				select {
				case lease = <-ended:
					return true
				default:
					return m.Stats().Troubles > before+1
				}
			})
			e.srv.RequireTTLs(e)
			cancel()
			if lease == nil {
				lease = <-ended
			}
			if lease != nil {
				e.MustUnlock(lease)
			}
		}
		allow("+pttl")
		e.Clean(m, Tombstones)
	},

	// S7: nor is there a queue without TTL, where one or both of its keys had been deleted.
	"DeniedTTLLeavesNoQueueWithoutOne": func(e *Env) {
		client, allow := e.limited()
		m, other := e.ManagerOn(client, holdfast.WithPollInterval(100*time.Millisecond)), e.Manager(holdfast.WithLease(time.Hour))
		held := e.MustLock(e.Lock(other))
		got := e.Locking(e.Lock(m))
		keys := e.queueKeys()
		for _, deleted := range [][]string{keys, keys[1:]} {
			e.Eventually("it stands in the queue", func() bool { return e.srv.Admin().Exists(bg, keys...).Val() == 2 })
			allow("-pttl")
			e.srv.Admin().Del(bg, deleted...)
			before := m.Stats().Troubles
			e.Eventually("it is denied", func() bool { return m.Stats().Troubles > before })
			e.srv.RequireTTLs(e)
			allow("+pttl")
		}
		e.Passes(held, "the waiter", got)
		e.Clean(m, Tombstones)
	},

	// Redis refuses to renew a lease, for a while: that is no loss, and Extend says why.
	"RefusedRenewalIsNoLoss": func(e *Env) {
		client, allow := e.limited()
		admin := e.srv.Admin()
		m := e.ManagerOn(client, holdfast.WithLease(10*lease))
		l := e.MustLock(e.Lock(m))
		for _, c := range []struct {
			refuse, allow func()
			says          string
		}{
			{
				func() { admin.ConfigSet(bg, "min-replicas-to-write", "1") },
				func() { admin.ConfigSet(bg, "min-replicas-to-write", "0") }, "NOREPLICAS",
			},
			{func() { admin.Do(bg, "REPLICAOF", "127.0.0.1", "1") }, func() { admin.Do(bg, "REPLICAOF", "NO", "ONE") }, "READONLY"},
			{func() { allow("-pexpire") }, func() { allow("+pexpire") }, ""},
			{func() { allow("-hexists") }, func() { allow("+hexists") }, ""},
		} {
			c.refuse()
			err := l.Extend(bg, 20*lease)
			e.WantErr(err, holdfast.ErrUnavailable)
			if err != nil && !strings.Contains(err.Error(), c.says) {
				e.Errorf("%v does not say %q", err, c.says)
			}
			c.allow()
			redistest.Must(e, l.Err())
		}
		redistest.Check(e, l.Extend(bg, 20*lease))
		e.MustUnlock(l)
		e.Clean(m)
	},

	// N3: locks whose keys the user may not touch any more are lost, and no others, though one
	// request renews them all.
	"KeysThatAreForbiddenLaterLoseNoOthers": func(e *Env) {
		client, allow := e.limited()
		m := e.ManagerOn(client)
		var kept, forbidden []*holdfast.Lease
		for i := range 5 {
			kept = append(kept, e.MustLock(e.kind.Lock(m, fmt.Sprint("kept:", i))))
			forbidden = append(forbidden, e.MustLock(e.kind.Lock(m, fmt.Sprint("old:", i))))
		}
		allow("resetkeys", "~kept:*", "~holdfast_*", "~redisson_*")
		for _, l := range forbidden {
			<-l.Done()
			e.WantLost(l, holdfast.LostDeadline)
		}
		allow("~*") // or what was lost is not given back
		e.MustUnlock(kept...)
	},

	// L6: a waiter that stands in the queue when Redis has no memory left, or may not keep a place, stands
	// there after that as well.
	"OutOfMemoryInTheQueue": func(e *Env) {
		m, other := e.Manager(holdfast.WithPollInterval(100*time.Millisecond)), e.Manager(holdfast.WithLease(time.Hour))
		held := e.MustLock(e.Lock(other))
		got := e.InQueue(1, e.Lock(m))
		e.srv.Admin().ConfigSet(bg, "maxmemory", "1")
		before := m.Stats().Troubles
		e.Eventually("it has been refused a few times", func() bool {
			select {
			case <-got: // Locking has told why
				return true
			default:
				return m.Stats().Troubles > before+2
			}
		})
		redistest.Want(e, e.srv.Admin().LLen(bg, e.queue()).Val(), 1, "%d stand in the queue")
		e.srv.Admin().ConfigSet(bg, "maxmemory", "0")
		e.Passes(held, "the waiter", got)
		e.Clean(m)
	},

	// H1: a waiter that leaves while Redis refuses to write leaves no place behind.
	"LeavesWhileWritesAreRefused": func(e *Env) {
		m, other := e.Manager(holdfast.WithFairPatience(time.Hour)), e.Manager(holdfast.WithLease(time.Hour))
		held := e.MustLock(e.Lock(other))
		ctx, cancel := context.WithCancel(bg)
		left := redistest.Begin(func() error { _, err := e.Lock(m).Lock(ctx); return err })
		e.Queued(1)
		e.srv.Admin().ConfigSet(bg, "min-replicas-to-write", "1")
		cancel()
		e.WantErr(<-left, context.Canceled)
		before := m.Stats().Troubles
		e.Eventually("it cannot leave the queue", func() bool { return m.Stats().Troubles > before })
		e.srv.Admin().ConfigSet(bg, "min-replicas-to-write", "0")
		e.Eventually("it has left", func() bool { return e.srv.Admin().LLen(bg, e.queue()).Val() == 0 })
		e.MustUnlock(held)
		e.Clean(m, Tombstones)
	},

	// S7: a release that may not give the next owner's lock a TTL grants it to no waiter, and sends no message.
	"DeniedTTLGrantsNothing": func(e *Env) {
		client, allow := e.limited()
		m := e.ManagerOn(client, holdfast.WithLease(time.Hour))
		held := e.MustLock(e.Lock(m))
		got := e.Locking(e.Lock(e.Manager()))
		e.Listening(1)
		mon := e.srv.Monitor(e)
		allow("-pexpire")
		e.MustUnlock(held)
		e.srv.RequireTTLs(e)
		e.srv.Admin().Echo(bg, "that is all")
		mon.Wait(e, "that is all", patience)
		for _, line := range mon.Lines() {
			if strings.Contains(line, `"holdfast_inbox:`) && strings.Contains(line, ` "g `) {
				e.Errorf("a grant is told: %s", line)
			}
		}
		allow("+pexpire")
		e.MustUnlock(<-got)
		e.Clean(m)
	},

	// S8: Lua's numbers are exact up to 2^53. Tokens beyond would repeat.
	"FencingCounterBeyondExactNumbers": func(e *Env) {
		m := e.Manager(holdfast.WithFencing())
		counter := "redisson_lock_token:{" + e.Key + "}"
		e.Server().Admin().Set(bg, counter, int64(1<<53-1_000_000), 0)
		l := e.MustLock(e.Lock(m))
		if l.Token() <= 1<<53-1_000_000 {
			e.Errorf("token %d", l.Token())
		}
		e.MustUnlock(l)
		e.srv.Admin().Set(bg, counter, int64(1<<53), 0)
		_, err := e.Lock(m).Lock(bg)
		e.WantErr(err, holdfast.ErrWrongKind)
		if err != nil && !strings.Contains(err.Error(), counter+` holds "9007199254740993", which is no number below 2^53`) {
			e.Errorf("%v does not say why", err)
		}
		e.Free()
		// A release does not grant the lock with such a token either: who is granted it asks, and is told.
		e.srv.Admin().Del(bg, counter)
		held := e.MustLock(e.Lock(e.Manager(holdfast.WithFencing())))
		failed := redistest.Begin(func() error { _, err := e.Lock(m).Lock(bg); return err })
		e.Queued(1)
		e.srv.Admin().Set(bg, counter, int64(1<<53), 0)
		e.MustUnlock(held)
		e.WantErr(<-failed, holdfast.ErrWrongKind)
		e.MustUnlock(e.MustLock(e.Lock(e.Manager()))) // when it has been given back
	},
}
