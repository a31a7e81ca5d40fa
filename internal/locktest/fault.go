package locktest

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// acquireOf and releaseOf match the scripts' calls for a key. An acquire has the
// tombstones as its second key, a release the channel.
func acquireOf(key string) redistest.Match {
	return func(cmd []string) bool {
		return script(cmd) && len(cmd) > 6 && cmd[3] == key && strings.HasPrefix(cmd[4], Tombstones)
	}
}

func releaseOf(key string) redistest.Match {
	return func(cmd []string) bool {
		return script(cmd) && len(cmd) > 6 && cmd[3] == key &&
			(strings.HasPrefix(cmd[4], "redisson_lock__channel:") || strings.HasPrefix(cmd[4], "redisson_rwlock:"))
	}
}

func script(cmd []string) bool {
	return redistest.Command("evalsha")(cmd) || redistest.Command("eval")(cmd)
}

var faultScenarios = map[string]func(*Env){
	// A lost reply must not become a second acquire.
	"LostAcquireReplyIsResolved": func(e *Env) {
		m, p := e.Via()
		l := e.Lock(m, holdfast.WithFencing())
		e.MustUnlock(e.MustLock(l))
		for _, lock := range []func(context.Context) (*holdfast.Lease, error){l.Lock, l.TryLock} {
			p.LoseReply(acquireOf(e.Key), 1)
			got, err := lock(bg)
			if err != nil {
				e.Fatal(err)
			}
			for owner, count := range e.Holders() {
				if count != "1" {
					e.Errorf("hold count %s of %s", count, owner)
				}
			}
			e.MustUnlock(got)
			if n := e.srv.Admin().Exists(bg, e.Key).Val(); n != 0 {
				e.Error("still held after Unlock")
			}
		}
		e.Clean(m, Tombstones, Tokens)
	},

	"LostAcquireRequestIsRepeated": func(e *Env) {
		m, p := e.Via()
		l := e.Lock(m)
		e.MustUnlock(e.MustLock(l))
		p.LoseRequest(acquireOf(e.Key), 1)
		e.MustUnlock(e.MustLock(l))
		e.Clean(m, Tombstones)
	},

	// S5: the release ran, its reply was lost.
	"LostReleaseReplyIsASuccess": func(e *Env) {
		m, p := e.Via()
		l := e.Lock(m)
		e.MustUnlock(e.MustLock(l))
		for range 5 {
			got := e.MustLock(l)
			p.LoseReply(releaseOf(e.Key), 1)
			if err := got.Unlock(bg); err != nil {
				e.Errorf("Unlock: %v", err)
			}
			e.WantErr(got.Unlock(bg), holdfast.ErrNotHeld)
		}
		if m.Stats().Troubles == 0 {
			e.Error("nothing was lost")
		}
		e.Clean(m)
	},

	"LostReleaseRequestIsRepeated": func(e *Env) {
		m, p := e.Via()
		l := e.Lock(m)
		e.MustUnlock(e.MustLock(l))
		got := e.MustLock(l)
		p.LoseRequest(releaseOf(e.Key), 1)
		if err := got.Unlock(bg); err != nil {
			e.Errorf("Unlock: %v", err)
		}
		if m.Stats().Troubles == 0 {
			e.Error("nothing was lost")
		}
		e.Clean(m)
	},

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
		m, p := e.Via(holdfast.WithLease(time.Minute)) // nothing is free by itself
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
		m, p := e.Via(holdfast.WithLease(time.Minute)) // nothing is free by itself
		l := e.Lock(m)
		e.MustUnlock(e.MustLock(l))
		for range 30 {
			gate := p.HoldReply(acquireOf(e.Key))
			ctx, cancel := context.WithCancel(bg)
			result := make(chan error, 1)
			go func() {
				_, err := l.Lock(ctx)
				result <- err
			}()
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
		first := make(chan error, 1)
		go func() { _, err := l.Lock(ctx); first <- err }()
		gate.Wait(e)
		second := e.Locking(l)
		e.Parked(m, 2)
		p.Record()
		cancel()
		e.WantErr(<-first, context.Canceled)
		gate.Release()
		got := <-second
		if n := p.Count(acquireOf(e.Key)); n != 0 && !e.kind.Places {
			e.Errorf("%d more requests for a lock that was granted", n)
		}
		e.MustUnlock(got)
		e.Clean(m)
	},

	// A copy of the acquire that arrives after its claim was given up: the tombstone.
	"LateCopyIsRefused": func(e *Env) {
		m, p := e.Via()
		l := e.Lock(m)
		e.MustUnlock(e.MustLock(l))
		gate := p.HoldRequest(acquireOf(e.Key))
		ctx, cancel := context.WithTimeout(bg, 200*time.Millisecond)
		defer cancel()
		_, err := l.Lock(ctx)
		e.WantErr(err, context.DeadlineExceeded, holdfast.ErrUnavailable)
		gate.Wait(e)
		e.Eventually("the claim is undone", func() bool { return m.Stats().Locks == 0 })
		mon := e.srv.Monitor(e)
		gate.Release()
		mon.Wait(e, `"zscore"`, patience) // the copy has run
		if n := e.srv.Admin().Exists(bg, e.Key).Val(); n != 0 {
			e.Error("a late copy of a request that was given up took the lock")
		}
		e.Free()
		e.srv.RequireTTLs(e)
	},

	// S2: the reply comes when the lease it grants is over.
	"GrantThatComesTooLateIsNone": func(e *Env) {
		m, p := e.Via(holdfast.WithLease(150 * time.Millisecond))
		l := e.Lock(m)
		e.MustUnlock(e.MustLock(l))
		p.Delay(100*time.Millisecond, 0) // 200 ms for a round trip, of a lease of 150
		ctx, cancel := context.WithTimeout(bg, 900*time.Millisecond)
		defer cancel()
		got, err := l.Lock(ctx)
		if err == nil {
			e.Errorf("granted until %v", time.Until(got.Deadline()))
		}
		p.Heal()
		e.Eventually("free again", func() bool { return e.srv.Admin().Exists(bg, e.Key).Val() == 0 })
	},

	// AC-06, L6: Redis is down, or worse, does not answer.
	"DeadOrSilentServer": func(e *Env) {
		m, p := e.Via()
		try := func(what string, timeout time.Duration) {
			for _, lock := range []func(context.Context) (*holdfast.Lease, error){e.Lock(m).Lock, e.Lock(m).TryLock} {
				ctx, cancel := context.WithTimeout(bg, timeout)
				start := time.Now()
				_, err := lock(ctx)
				if d := time.Since(start); d > timeout+prompt {
					e.Errorf("%s: returned after %v", what, d)
				}
				e.Worst("L6:late-return", time.Since(start)-timeout)
				cancel()
				e.WantErr(err, holdfast.ErrUnavailable)
				e.WantNotErr(err, holdfast.ErrNotAcquired)
			}
			ctx, cancel := context.WithCancel(bg)
			time.AfterFunc(100*time.Millisecond, cancel)
			start := time.Now()
			_, err := e.Lock(m).Lock(ctx)
			if d := time.Since(start); d > 100*time.Millisecond+prompt {
				e.Errorf("%s: returned %v after the start, 100ms to the cancel", what, d)
			}
			e.WantErr(err, holdfast.ErrUnavailable, context.Canceled)
		}
		p.BlackHole(true)
		try("black hole", 300*time.Millisecond)
		p.Heal()
		e.srv.Pause()
		try("frozen", 300*time.Millisecond)
		e.srv.Resume()
		e.srv.Kill()
		try("dead", 300*time.Millisecond)
		// L7: it comes back, and a waiter that was there all along gets the lock.
		got := e.Locking(e.Lock(m))
		e.Parked(m, 1)
		e.srv.Restart()
		e.MustUnlock(<-got)
	},

	// Callers come and go for as long as it takes until what the first ones have left behind is
	// overdue, and given up, and that is overdue as well.
	"SilentServerIsToldToEveryone": func(e *Env) {
		m, p := e.Via()
		e.MustUnlock(e.MustLock(e.Lock(m)))
		p.BlackHole(true)
		var callers sync.WaitGroup
		for range 150 {
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(bg, 150*time.Millisecond)
				defer cancel()
				_, err := e.Lock(m).Lock(ctx)
				e.WantErr(err, holdfast.ErrUnavailable)
			})
			time.Sleep(20 * time.Millisecond) // so they come
		}
		callers.Wait()
		p.Heal()
		e.MustUnlock(e.MustLock(e.Lock(m)))
	},

	// TryLock without a deadline does not wait for a silent server for ever.
	"TryLockIsBounded": func(e *Env) {
		m := e.Manager()
		e.Server().Pause()
		start := time.Now()
		_, err := e.Lock(m).TryLock(bg)
		if d := time.Since(start); d > time.Second+prompt {
			e.Errorf("returned after %v", d)
		}
		e.WantErr(err, holdfast.ErrUnavailable)
		e.srv.Resume()
		e.Eventually("no trace", func() bool { return m.Stats().Locks == 0 })
		e.Free()
	},

	// AC-07: the application has used up its pool. go-redis has connections of their own
	// for pipelines, so that alone does not even delay a lock; when those are stuck as
	// well, the caller leaves in time.
	"ExhaustedPool": func(e *Env) {
		p := e.Server().Proxy(e)
		client := p.ClientWith(e, func(o *redis.Options) { o.PoolSize = 1; o.MaxActiveConns = 1 })
		m := e.ManagerOn(client)
		blocked := make(chan struct{})
		ctx, cancel := context.WithCancel(bg)
		gate := p.HoldRequest(redistest.Command("blpop"))
		go func() { defer close(blocked); client.BLPop(ctx, time.Second, "nothing") }()
		gate.Wait(e)
		e.MustUnlock(e.MustLock(e.Lock(m)))
		p.Freeze(true)
		wait, cancelWait := context.WithTimeout(bg, 100*time.Millisecond)
		defer cancelWait()
		start := time.Now()
		_, err := e.Lock(m).Lock(wait)
		if d := time.Since(start); d > 100*time.Millisecond+prompt {
			e.Errorf("returned after %v", d)
		}
		e.WantErr(err, holdfast.ErrUnavailable, context.DeadlineExceeded)
		p.Freeze(false)
		gate.Release()
		e.Clean(m, Tombstones)
		cancel()
		<-blocked
	},

	// AC-10, F4
	"FlushedScripts": func(e *Env) {
		m := e.Manager()
		for range 200 {
			e.srv.Admin().ScriptFlush(bg)
			l := e.MustLock(e.Lock(m))
			e.srv.Admin().ScriptFlush(bg)
			e.MustUnlock(l)
		}
		e.Clean(m)
	},

	// AC-11: LOADING is not a refusal of the lock.
	"LoadingServer": func(e *Env) {
		e.Server(redistest.WithAOF(), redistest.WithArgs("--key-load-delay", "200"))
		pipe := e.srv.Admin().Pipeline()
		for i := range 20_000 {
			pipe.Set(bg, "filler:"+time.Duration(i).String(), "x", 0)
		}
		if _, err := pipe.Exec(bg); err != nil {
			e.Fatal(err)
		}
		m := e.Manager()
		e.MustUnlock(e.MustLock(e.Lock(m)))
		e.srv.RestartNoWait()
		_, err := e.Lock(m).TryLock(bg)
		e.WantErr(err, holdfast.ErrUnavailable)
		e.WantNotErr(err, holdfast.ErrNotAcquired)
		e.srv.Admin().ConfigSet(bg, "key-load-delay", "0") // how long it takes is up to the machine
		e.MustUnlock(e.MustLock(e.Lock(m)))                // waits for the end of it
	},

	// OOM, READONLY, NOREPLICAS: errors, never refusals, and no state.
	"RefusingServer": func(e *Env) {
		m := e.Manager()
		e.MustUnlock(e.MustLock(e.Lock(m)))
		admin := e.srv.Admin()
		for _, tc := range []struct{ set, value, back, text string }{
			{"maxmemory", "1", "0", "OOM"},
			{"min-replicas-to-write", "1", "0", "NOREPLICAS"}, // AC-88
		} {
			if err := admin.ConfigSet(bg, tc.set, tc.value).Err(); err != nil {
				e.Fatal(err)
			}
			_, err := e.Lock(m).TryLock(bg)
			e.WantErr(err, holdfast.ErrUnavailable)
			e.WantNotErr(err, holdfast.ErrNotAcquired)
			if err != nil && !strings.Contains(err.Error(), tc.text) {
				e.Errorf("%v does not say %s", err, tc.text)
			}
			ctx, cancel := context.WithTimeout(bg, 200*time.Millisecond)
			_, err = e.Lock(m).Lock(ctx)
			cancel()
			e.WantErr(err, holdfast.ErrUnavailable, context.DeadlineExceeded)
			e.srv.RequireNoKeys(e)
			admin.ConfigSet(bg, tc.set, tc.back)
			e.MustUnlock(e.MustLock(e.Lock(m)))
		}
		admin.Do(bg, "REPLICAOF", "127.0.0.1", "1") // a replica of nothing
		_, err := e.Lock(m).TryLock(bg)
		e.WantErr(err, holdfast.ErrUnavailable)
		admin.Do(bg, "REPLICAOF", "NO", "ONE")
		e.MustUnlock(e.MustLock(e.Lock(m)))
		e.Clean(m)
	},

	// OOM while held: the release still works, and so does renewal.
	"ReleaseUnderOOM": func(e *Env) {
		m := e.Manager()
		l := e.MustLock(e.Lock(m))
		e.srv.Admin().ConfigSet(bg, "maxmemory", "1")
		n := m.Stats().Renewals
		e.Eventually("a renewal", func() bool { return m.Stats().Renewals > n })
		e.MustUnlock(l)
		e.srv.Admin().ConfigSet(bg, "maxmemory", "0")
		e.Clean(m)
	},

	// F9 and S7: an ACL that lets a script begin and not end.
	"DeniedCommandsLeaveNoState": func(e *Env) {
		admin := e.Server().Admin()
		for _, acl := range [][]any{{"-pexpire"}, {"-hset"}, {"-eval", "-evalsha"}, {"resetkeys"}} {
			args := []any{"ACL", "SETUSER", "limited", "reset", "on", ">secret", "~*", "&*", "+@all"}
			if err := admin.Do(bg, append(args, acl...)...).Err(); err != nil {
				e.Fatal(err)
			}
			opt := e.srv.Options()
			opt.Username, opt.Password = "limited", "secret"
			m := e.ManagerOn(e.client(opt))
			for _, lock := range []func(context.Context) (*holdfast.Lease, error){e.Lock(m).TryLock, e.Lock(m).Lock} {
				ctx, cancel := context.WithTimeout(bg, time.Second)
				_, err := lock(ctx)
				cancel()
				e.WantErr(err, holdfast.ErrUnavailable)
			}
			e.srv.RequireNoKeys(e, Tombstones)
			e.srv.RequireTTLs(e)
		}
	},

	// CLIENT PAUSE: writes stand still and go on.
	"PausedWrites": func(e *Env) {
		m := e.Manager(holdfast.WithLease(20 * time.Second)) // Unlock waits for a second
		l := e.MustLock(e.Lock(m))
		e.srv.Admin().Do(bg, "CLIENT", "PAUSE", "200", "WRITE")
		start := time.Now()
		e.MustUnlock(l)
		e.Logf("unlocked after %v", time.Since(start))
		e.Clean(m)
	},
}
