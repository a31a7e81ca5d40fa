package locktest

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

// deniedReleaseScenarios are about a user that loses a right while it holds a lock for which another process waits.
var deniedReleaseScenarios = map[string]func(*Env){
	// The waiter is served, by a poll without a message, or when the holder's TTL ends. Unlock returns nil only if the
	// lock has been given back, and no key loses its TTL.
	"DeniedReleaserHandsTheLockOn": func(e *Env) {
		e.releasersWithoutRights(func(m *holdfast.Manager, name string) holdfast.Locker { return e.kind.Lock(m, name) })
	},
}

// rwDeniedReleaseScenarios are deniedReleaseScenarios where readers hold the lock.
var rwDeniedReleaseScenarios = map[string]func(*Env){
	"DeniedReaderHandsTheLockOn": func(e *Env) {
		e.releasersWithoutRights(func(m *holdfast.Manager, name string) holdfast.Locker { return m.RWMutex(name).RLocker() })
	},
	"DeniedReadersCopyEndsNothing": func(e *Env) {
		e.copiesWithoutRights(func(m *holdfast.Manager, name string) holdfast.Locker { return m.RWMutex(name).RLocker() })
	},
}

// copiesWithoutRights takes a lock while a copy of the request is on its way, which comes when a right has gone.
func (e *Env) copiesWithoutRights(lock func(m *holdfast.Manager, name string) holdfast.Locker) {
	e.Server()
	for _, command := range []string{"pexpire", "set"} {
		user, key := "without-"+command, e.Key+":"+command
		e.permit(user, "&*")
		d := e.denied(user, holdfast.WithLease(time.Hour)) // no renewal comes in between
		e.MustUnlock(e.MustLock(lock(d.m, e.Key)))
		late := d.p.HoldFirstRequest(acquireOf(key))
		held := e.MustLock(lock(d.m, key))
		e.permit(user, "-"+command)
		before := e.srv.CommandCalls("eval", "evalsha")
		late.Release()
		e.Eventually("the copy has been executed", func() bool { return e.srv.CommandCalls("eval", "evalsha") > before })
		if owners := e.ownersOf(d.m, key); len(owners) != 1 || !held.Valid() {
			e.Errorf("without %s: held by %q, and the lease says %v", command, owners, held.Err())
		}
		e.permit(user, "+@all")
		e.MustUnlock(held)
	}
}

// deniedCommands are those of a release and of the hand-off in it. The first three only notify others.
var deniedCommands = []string{
	"publish", "spublish", "pubsub",
	"hdel", "hset", "hget", "hexists", "hlen", "hgetall", "exists", "del", "pexpire", "pttl",
	"lindex", "llen", "lrange", "lpop", "lrem", "zrem", "zscore", "zcount", "time", "evalsha",
}

// releasersWithoutRights has a holder for each command that loses the right to it, and unlocks then.
func (e *Env) releasersWithoutRights(held func(m *holdfast.Manager, name string) holdfast.Locker) {
	e.Server()
	waiter := e.Manager(holdfast.WithPollInterval(200 * time.Millisecond))
	var all sync.WaitGroup
	defer all.Wait()
	for _, command := range deniedCommands {
		user, name := "without-"+command, e.Key+":"+command
		e.permit(user, "&*")
		d := e.denied(user, holdfast.WithFixedLease(2*lease))
		all.Go(func() {
			lease := e.MustLock(held(d.m, name))
			owner := e.ownersOf(waiter, name)[0]
			got := e.Locking(e.kind.Lock(waiter, name))
			e.Eventually("a waiter stands in the queue", func() bool { info, err := waiter.Inspect(bg, name); return err == nil && info.Waiters == 1 })
			e.permit(user, "-"+command)
			err := lease.Unlock(bg)
			switch {
			case err != nil && slices.Contains(deniedCommands[:3], command):
				e.Errorf("without %s: %v", command, err)
			case err != nil:
				e.WantErr(err, holdfast.ErrUnavailable)
				e.WantNotErr(err, holdfast.ErrLeaseLost)
				// The second is Redis's up to 7.0, the third that of later servers; the last where the machine stands still for half a second.
				why := []string{"NOPERM", "can't run this command", "ACL failure", "no answer"}
				if !slices.ContainsFunc(why, func(w string) bool { return strings.Contains(err.Error(), w) }) {
					e.Errorf("without %s: %v", command, err)
				}
			case slices.Contains(e.ownersOf(waiter, name), owner):
				e.Errorf("without %s: Unlock returned nil, and the lock is held", command)
			}
			e.MustUnlock(e.Soon("the waiter is served without "+command, got))
			e.permit(user, "+@all")

			lease = e.MustLock(held(d.m, name))
			e.deadWaiter(name)
			e.permit(user, "-"+command)
			_ = lease.Unlock(bg)
			e.srv.RequireTTLs(e) // no process renews what the dead waiter may have been granted
			e.permit(user, "+@all")
		})
	}
}

// deadWaiter puts a waiter into the queue of a lock whose process is dead, and heard no messages before.
func (e *Env) deadWaiter(name string) {
	e.Helper()
	id, prefix := "hf-11111111-2222-4333-8444-555555555555:1", "redisson_lock_"
	if e.kind.Write {
		id, prefix = id+":write", "holdfast_rw_"
	}
	queue, times := prefix+"queue:{"+name+"}", prefix+"timeout:{"+name+"}"
	kept := float64(time.Now().Add(time.Minute).UnixMilli()) + .5
	if _, err := e.srv.Admin().TxPipelined(bg, func(p redis.Pipeliner) error {
		p.RPush(bg, queue, id)
		p.ZAdd(bg, times, redis.Z{Score: kept, Member: id})
		p.PExpire(bg, queue, time.Minute)
		p.PExpire(bg, times, time.Minute)
		return nil
	}); err != nil {
		e.Fatal(err)
	}
}

// ownersOf returns the owner ids that hold a lock.
func (e *Env) ownersOf(m *holdfast.Manager, name string) (owners []string) {
	e.Helper()
	e.Eventually("Redis answers", func() bool {
		info, err := m.Inspect(bg, name)
		owners = nil
		for _, h := range info.Holders {
			owners = append(owners, h.Owner)
		}
		return err == nil
	})
	return owners
}
