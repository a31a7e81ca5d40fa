package locktest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// acquireOf and releaseOf match the scripts' calls for a key. A release says behind the owner how to publish; an
// acquire, of whatever script, does not, and has the tombstones among its keys.
func acquireOf(key string) redistest.Match {
	release := releaseOf(key)
	return func(cmd []string) bool {
		keys, _, ok := redistest.ScriptCall(cmd)
		return ok && len(keys) > 2 && keys[0] == key && !release(cmd) &&
			slices.ContainsFunc(keys, func(k string) bool { return strings.HasPrefix(k, Tombstones) })
	}
}

func releaseOf(key string) redistest.Match {
	return func(cmd []string) bool {
		keys, argv, ok := redistest.ScriptCall(cmd)
		return ok && len(keys) > 2 && len(argv) > 2 && keys[0] == key && (argv[1] == "publish" || argv[1] == "spublish")
	}
}

// renewOf matches renewals of a key alone; before any Extend.
func renewOf(key string) redistest.Match {
	acquire, release := acquireOf(key), releaseOf(key)
	return func(cmd []string) bool {
		keys, _, ok := redistest.ScriptCall(cmd)
		return ok && len(keys) == 1 && keys[0] == key && !acquire(cmd) && !release(cmd)
	}
}

// extendOf matches requests that give a hold of key another time than its lease.
func extendOf(key string) redistest.Match {
	return func(cmd []string) bool {
		return script(cmd) && len(cmd) > 4 && cmd[2] == "1" && cmd[3] == key && cmd[4] != milliseconds(lease)
	}
}

func script(cmd []string) bool {
	return redistest.Command("evalsha")(cmd) || redistest.Command("eval")(cmd)
}

// bothFaultScenarios are for what every kind of lock has, and for the read side.
var bothFaultScenarios = map[string]func(*handed){
	// S3, S5: a request or its reply is lost. It is repeated: no acquire counts twice, and a release is a success once.
	"LostMessagesAreRepeated": func(e *handed) {
		m, p := e.Via()
		l := e.ours(m, holdfast.WithFencing())
		e.MustUnlock(e.MustLock(l))
		for _, lose := range []func(redistest.Match, int){p.LoseReply, p.LoseRequest} {
			for _, lock := range []func(context.Context) (*holdfast.Lease, error){l.Lock, l.TryLock} {
				before := m.Stats().Troubles
				lose(acquireOf(e.Key), 1)
				got := e.taken(lock, patience)
				for owner, count := range e.Holders() {
					redistest.Want(e, count, "1", "hold count %s of "+owner)
				}
				lose(releaseOf(e.Key), 1)
				e.works(func() error { return got.Unlock(bg) })
				e.WantErr(got.Unlock(bg), holdfast.ErrNotHeld)
				if keys := e.Rights(); len(keys) != 0 || e.srv.Admin().Exists(bg, e.Key).Val() != 0 {
					e.Errorf("left: %v", e.srv.Keys())
				}
				if m.Stats().Troubles < before+2 {
					e.Error("nothing was lost")
				}
			}
		}
		e.Clean(m, Tombstones, Tokens)
	},

	// F9 and S7: an ACL that lets a script begin and not end.
	"DeniedCommandsLeaveNoState": func(e *handed) {
		rules := []string{"-pexpire", "-hset", "-eval -evalsha", "resetkeys"}
		if e.reads {
			rules = append(rules, "-set") // which makes its right
		}
		for _, rule := range rules {
			client, allow := e.limited()
			for _, r := range strings.Fields(rule) {
				allow(r)
			}
			m := e.ManagerOn(client)
			for _, lock := range []func(context.Context) (*holdfast.Lease, error){e.ours(m).TryLock, e.ours(m).Lock} {
				ctx, cancel := context.WithTimeout(bg, time.Second)
				_, err := lock(ctx)
				cancel()
				e.WantErr(err, holdfast.ErrUnavailable)
			}
			e.srv.RequireNoKeys(e, Tombstones)
			e.srv.RequireTTLs(e)
		}
	},
}

var faultScenarios = map[string]func(*Env){
	// Every reply of a while is lost: no count, no TTL, no owner goes wrong.
	"LostRepliesUnderLoad": func(e *Env) {
		m, p := e.Via()
		var s Section
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 10 {
					p.LoseReply(redistest.Containing(e.Key), 1)
					l := e.MustLock(e.Lock(m))
					s.Enter(e, time.Millisecond)
					if err := l.Unlock(bg); err != nil && !errors.Is(err, holdfast.ErrUnavailable) {
						e.Errorf("Unlock: %v", err)
					}
				}
			})
		}
		wg.Wait()
		p.Heal()
		e.Clean(m, Tombstones)
	},

	// AC-08: cancelled at a random phase of the acquire, 200 times.
	"CancelAtAnyPhaseLeavesNoTrace": func(e *Env) {
		m, p := e.Via(holdfast.WithLease(time.Hour)) // nothing is free by itself
		other := e.Lock(e.Manager())
		l := e.Lock(m)
		e.MustUnlock(e.MustLock(l))
		p.Delay(0, 5*time.Millisecond)
		for range 200 {
			ctx, cancel := context.WithTimeout(bg, rand.N(12*time.Millisecond))
			got, err := l.Lock(ctx)
			if err == nil {
				err = got.Unlock(bg)
			}
			cancel()
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				e.Errorf("%v", err)
			}
			e.Eventually("free for others", func() bool {
				got, err := other.TryLock(bg)
				return err == nil && got.Unlock(bg) == nil
			})
		}
		e.Clean(m, Tombstones) // of requests that were given up
	},

	// AC-09, H2: granted by the server, cancelled before the reply came.
	"CancelBetweenGrantAndReply": func(e *Env) {
		m, p := e.Via(holdfast.WithLease(time.Hour)) // nothing is free by itself
		l := e.Lock(m)
		e.MustUnlock(e.MustLock(l))
		for range 30 {
			gate := p.HoldReply(acquireOf(e.Key))
			ctx, cancel := context.WithCancel(bg)
			result := redistest.Begin(func() error { _, err := l.Lock(ctx); return err })
			gate.Wait(e)
			cancel()
			e.WantErr(<-result, context.Canceled)
			gate.Release()
			e.Eventually("given back", func() bool { return e.srv.Admin().Exists(bg, e.Key).Val() == 0 })
		}
		if s := m.Stats(); s.Held != 0 || s.Renewals != 0 {
			e.Errorf("an abandoned grant is renewed: %+v", s)
		}
		e.Clean(m)
	},

	// The attempt belongs to the name: its grant goes to the next in line.
	"GrantOfACancelledCallerGoesToTheNext": func(e *Env) {
		m, p := e.Via()
		l := e.Lock(m)
		e.MustUnlock(e.MustLock(l))
		gate := p.HoldReply(acquireOf(e.Key))
		ctx, cancel := context.WithCancel(bg)
		first := redistest.Begin(func() error { _, err := l.Lock(ctx); return err })
		gate.Wait(e)
		second := e.Parking(m, 2, l)
		p.Record()
		cancel()
		e.WantErr(<-first, context.Canceled)
		gate.Release()
		got := <-second
		if n := p.Count(acquireOf(e.Key)); n != 0 && !e.kind.Places && !e.troubled() {
			e.Errorf("%d more requests for a lock that was granted", n)
		}
		e.MustUnlock(got)
		e.Clean(m)
	},

	// A TryLock does not meet what a caller of its process that gave up has been granted.
	"TryLockBehindACancelledGrant": func(e *Env) {
		m, p := e.Via()
		l := e.Lock(m)
		e.MustUnlock(e.MustLock(l))
		gate := p.HoldReply(acquireOf(e.Key))
		ctx, cancel := context.WithCancel(bg)
		first := redistest.Begin(func() error { _, err := l.Lock(ctx); return err })
		gate.Wait(e)
		cancel()
		e.WantErr(<-first, context.Canceled)
		tried := make(chan error, 1)
		go func() {
			got, err := l.TryLock(bg)
			tried <- err
			if err == nil {
				e.MustUnlock(got)
			}
		}()
		e.Eventually("it waits, or has been refused", func() bool { return m.Stats().Waiting == 1 || len(tried) == 1 })
		gate.Release()
		if err := <-tried; err != nil {
			e.Errorf("TryLock of a free lock: %v", err)
		}
		e.Clean(m)
	},

	// A copy of the acquire that arrives after its claim was given up: the tombstone.
	"LateCopyIsRefused": func(e *Env) {
		m, p := e.Via()
		l := e.Lock(m)
		e.MustUnlock(e.MustLock(l))
		gate := p.HoldFirstRequest(acquireOf(e.Key))
		p.Refuse(true) // else a new connection shows that the old one is dead, and the request is repeated
		ctx, cancel := context.WithTimeout(bg, 200*time.Millisecond)
		defer cancel()
		_, err := l.Lock(ctx)
		e.WantErr(err, context.DeadlineExceeded, holdfast.ErrUnavailable)
		gate.Wait(e)
		p.Refuse(false)
		e.Eventually("the claim is undone", func() bool { return m.Stats().Locks == 0 })
		mon := e.srv.Monitor(e)
		gate.Release()
		mon.Wait(e, `"zscore"`, patience) // the copy has run
		redistest.Want(e, e.srv.Admin().Exists(bg, e.Key).Val(), 0, "a late copy of a request that was given up took the lock")
		e.Free()
		e.srv.RequireTTLs(e)
	},

	// S2: the reply comes when the lease it grants is over.
	"GrantThatComesTooLateIsNone": func(e *Env) {
		m, p := e.Via(holdfast.WithLease(150 * time.Millisecond))
		l := e.Lock(m)
		e.MustUnlock(e.MustLock(e.Lock(m, holdfast.WithLease(time.Hour))))
		p.Delay(100*time.Millisecond, 0) // 200 ms for a round trip, of a lease of 150
		ctx, cancel := context.WithTimeout(bg, 900*time.Millisecond)
		defer cancel()
		got, err := l.Lock(ctx)
		if err == nil {
			e.Errorf("granted until %v", time.Until(got.Deadline()))
		}
		e.WantErr(err, holdfast.ErrUnavailable)
		p.Heal()
		e.Eventually("free again", func() bool { return e.srv.Admin().Exists(bg, e.Key).Val() == 0 })
	},
}
