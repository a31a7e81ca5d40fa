package locktest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// lingerFaultScenarios are about WithLinger where messages are lost, processes die, and others do not ask.
var lingerFaultScenarios = map[string]func(*Env){
	// No caller has it, so there is no loss to tell of.
	"LostWhileIdleIsNoLoss": func(e *Env) {
		lines, logger := Logged()
		m := e.Manager(append(slices.Clone(keeps), holdfast.WithLease(lease), logger)...)
		l := e.Lock(m)
		e.MustUnlock(e.MustLock(l))
		e.idle(m)
		e.srv.Admin().Del(bg, e.Key)
		e.Eventually("it is dropped", func() bool { return m.Stats().Held == 0 })
		if s, said := m.Stats(), lines.With(""); s.Lost != 0 || len(said) != 0 {
			e.Errorf("%d losses, %q", s.Lost, said)
		}
		e.MustUnlock(e.MustLock(l))
		e.idle(m)
	},

	// The process would find that out with its next renewal, in twenty minutes, and give its callers what is gone.
	"ForcedFreeIsNotTakenUp": func(e *Env) {
		lines, logger := Logged()
		m := e.Manager(append(slices.Clone(keeps), holdfast.WithLease(time.Hour), logger)...)
		other := e.Manager(byMessage...)
		e.lingering(m, e.Lock(m))
		if freed, err := e.ForceUnlock(other); err != nil || !freed {
			e.Fatalf("ForceUnlock: %v, %v", freed, err)
		}
		got := e.MustLock(e.Lock(other))
		e.Eventually("the process keeps nothing", func() bool { return m.Stats().Held == 0 })
		e.Busy(e.Lock(m).TryLock)
		e.MustUnlock(got)
		if s, said := m.Stats(), lines.With(""); s.Lost != 0 || len(said) != 0 {
			e.Errorf("%d losses, %q", s.Lost, said)
		}
	},

	// The holder answers nothing: a TryLock is refused when its patience is over, and leaves no place. The lock ends with its TTL.
	"DeadHolderRefusesATryLock": func(e *Env) {
		m, p := e.Via(append(slices.Clone(keeps), holdfast.WithLease(lease))...)
		other := e.Manager(byMessage...)
		e.lingering(m, e.Lock(m))
		p.BlackHole(true)
		e.Busy(e.Lock(other).TryLock)
		e.Eventually("no place is left", func() bool { return e.srv.Admin().Exists(bg, e.queue()).Val() == 0 })
		ttl := e.PTTL()
		began := time.Now()
		e.MustUnlock(e.Soon("the lock of a dead holder", e.Locking(e.Lock(e.Manager()))))
		if d := time.Since(began); d > e.bound(ttl+prompt) {
			e.Errorf("it came after %v, and had a TTL of %v", d, ttl)
		}
		p.Heal()
	},

	// The message is lost, or late, and the waiter does not poll: the holder looks once a second.
	"DeafHolderLooks": func(e *Env) {
		m, p := e.Via(keeps...)
		e.lingering(m, e.Lock(m))
		gate := e.Deafen(m, p)
		defer gate.Release()
		began := time.Now()
		got := e.Soon("what a deaf process keeps", e.Locking(e.Lock(e.Manager(byMessage...))))
		if d := time.Since(began); e.kind.Virtual && d > 2*time.Second {
			e.Errorf("it came after %v", d)
		}
		e.MustUnlock(got)
	},

	// What an idle lock costs Redis, whatever the slice.
	"LooksOnceASecond": func(e *Env) {
		for _, slice := range []time.Duration{time.Hour, holdfast.DefaultHandoffSlice} {
			m := e.Manager(append(slices.Clone(keeps), holdfast.WithHandoffSlice(slice))...)
			e.lingering(m, e.Lock(m))
			began, before := time.Now(), m.Stats().Commands
			e.Eventually("it has looked three times", func() bool { return m.Stats().Commands >= before+3 })
			if d := time.Since(began); d < 2*time.Second || e.kind.Virtual && d > 3*time.Second+prompt {
				e.Errorf("it looked three times in %v, with a slice of %v", d, slice)
			}
			redistest.Check(e, m.Close(bg))
		}
	},

	// The holder does not answer for as long as it hears nothing, and a waiter comes before the TryLock: that asks nothing.
	"TryLockBehindAWaiterIsRefusedAtOnce": func(e *Env) {
		m, p := e.Via(keeps...)
		e.lingering(m, e.Lock(m))
		questions := p.HoldRequest(ScriptOn(e.queue(), "demand"))
		gate := e.Deafen(m, p)
		waiting := e.InQueue(1, e.Lock(e.Manager(byMessage...)))
		e.idle(m)
		other := e.Manager(byMessage...)
		e.Busy(e.Lock(other).TryLock)
		redistest.Want(e, other.Stats().Commands, 1, "%d commands")
		gate.Release()
		questions.Release()
		e.MustUnlock(e.Soon("what a process keeps", waiting))
	},

	// Each poll tells the holder again. Its own question is lost as well.
	"PollTellsTheHolder": func(e *Env) {
		m, p := e.Via(keeps...)
		e.lingering(m, e.Lock(m))
		questions := p.HoldRequest(ScriptOn(e.queue(), "demand"))
		gate := e.Deafen(m, p)
		waiting := e.InQueue(1, e.Lock(e.Manager()))
		gate.Release()
		e.MustUnlock(e.Soon("what a process keeps", waiting))
		questions.Release()
	},

	// Messages of before a new connection are lost: the holder asks as soon as it hears again.
	"HolderAsksWhenItHearsAgain": func(e *Env) {
		m := e.Manager(keeps...)
		e.lingering(m, e.Lock(m))
		e.srv.Admin().Do(bg, "client", "kill", "type", "pubsub")
		e.MustUnlock(e.Soon("the lock", e.Locking(e.Lock(e.Manager(byMessage...)))))
	},

	// They stand in the queue, and tell no holder. The holder looks once a second.
	"OlderVersionsAreSeen": func(e *Env) {
		m := e.Manager(keeps...)
		e.lingering(m, e.Lock(m))
		older := "hf-0c2d3f1e-aaaa-4bbb-8ccc-0123456789ab:1"
		if e.kind.Write {
			older += ":write"
		}
		admin := e.srv.Admin()
		admin.RPush(bg, e.queue(), older)
		now := admin.Time(bg).Val()
		admin.ZAdd(bg, e.queueKeys()[1], redis.Z{Score: float64(now.Add(time.Hour).UnixMilli()) + 0.5, Member: older}) // deaf: it has no inbox here
		e.Eventually("it is granted the lock", func() bool { _, has := e.Holders()[older]; return has })
		e.Eventually("nothing lingers", func() bool { return m.Stats().Held == 0 })
	},

	// One of Redisson listens for a release, and stands nowhere.
	"RedissonIsLetIn": func(e *Env) {
		m := e.Manager(keeps...)
		e.lingering(m, e.Lock(m))
		java := e.plainWaiter()
		java.listen()
		if !java.take() {
			e.Error("it was told of a release, and the lock is not free")
		}
		java.unlock()
	},

	// While callers of the process take turns, it looks once per slice.
	"RedissonIsLetInBetweenCallers": func(e *Env) {
		m := e.Manager(append(slices.Clone(keeps), holdfast.WithHandoffSlice(holdfast.DefaultHandoffSlice))...)
		l := e.Lock(m)
		e.lingering(m, l)
		owner, java := e.owner(), e.plainWaiter()
		e.Eventually("the lock is given back", func() bool {
			e.MustUnlock(e.MustLock(l))
			e.tick()
			return e.owner() != owner
		})
		java.listen()
	},

	// Redis does not let the process hear who wants the lock: it keeps none.
	"DeniedProcessKeepsNothing": func(e *Env) {
		e.Server()
		e.permit("deaf", "-subscribe")
		u := e.denied("deaf", keeps...)
		l := e.Lock(u.m)
		e.Eventually("it does not linger", func() bool {
			e.MustUnlock(e.MustLock(l))
			return len(e.Holders()) == 0
		})
		// It loses the right: what lingers goes, and what a caller has stays.
		e.permit("user", "&*")
		u = e.denied("user", keeps...)
		e.lingering(u.m, e.Lock(u.m))
		held := e.MustLock(u.m.Mutex(e.Key + ":held"))
		e.permit("user", "resetchannels")
		e.Eventually("it does not linger any more", func() bool { return len(e.Holders()) == 0 })
		redistest.Want(e, e.srv.Admin().Exists(bg, e.Key+":held").Val(), 1, "it is held by nobody")
		e.MustUnlock(held)
	},

	// The process stands still while its lease ends: the next caller does not get what is over.
	"NothingIsKeptBeyondTheDeadline": func(e *Env) {
		m, p := e.Via(append(slices.Clone(keeps), holdfast.WithLease(lease))...)
		l := e.Lock(m)
		e.MustUnlock(e.MustLock(l))
		owner := e.owner()
		p.BlackHole(true)
		e.Eventually("its time is over", func() bool { return m.Stats().Held == 0 })
		p.Heal()
		got := e.Soon("the lock", e.Locking(l))
		if e.owner() == owner || !got.Valid() {
			e.Errorf("owner %s, then %s; valid: %v", owner, e.owner(), got.Valid())
		}
		if s := m.Stats(); s.Lost != 0 {
			e.Errorf("%d losses", s.Lost)
		}
		e.MustUnlock(got)
	},

	// The release of what lingers is not answered: the next caller of the process waits for it, and no two have the lock.
	"UnansweredReleaseOfWhatLingers": func(e *Env) {
		m, p := e.Via(keeps...)
		e.lingering(m, e.Lock(m))
		gate := p.HoldFirstReply(releaseOf(e.Key))
		got := e.Soon("the lock", e.Locking(e.Lock(e.Manager(byMessage...))))
		gate.Wait(e)
		own := e.Locking(e.Lock(m))
		gate.Release()
		e.Parked(m, 1)
		e.Queued(1)
		e.Passes(got, "the lock", own)
	},

	"CancelledWaiterFreesNoMoreThanTheLock": func(e *Env) {
		a, b := e.Manager(keeps...), e.Manager(keeps...)
		e.lingering(a, e.Lock(a))
		for i := range 20 {
			for _, m := range []*holdfast.Manager{b, a} {
				ctx, cancel := context.WithTimeout(bg, time.Duration(i)*100*time.Microsecond)
				if got, err := e.Lock(m).Lock(ctx); err == nil {
					e.MustUnlock(got)
				}
				cancel()
			}
		}
		e.MustUnlock(e.Soon("the lock", e.Locking(e.Lock(a))))
		e.MustUnlock(e.Soon("the lock", e.Locking(e.Lock(b))))
	},

	"NotWithOptionsThatExcludeIt": func(e *Env) {
		m := e.Manager()
		for _, opts := range [][]holdfast.LockOption{
			{holdfast.WithLinger(time.Second), holdfast.WithFixedLease(time.Second)},
			{holdfast.WithLinger(time.Second), holdfast.WithHoldAtLeast(time.Second)},
			{holdfast.WithLinger(-1)},
		} {
			_, err := e.Lock(m, opts...).TryLock(bg)
			e.WantErr(err, holdfast.ErrInvalidOption)
			if !strings.Contains(err.Error(), "WithLinger") {
				e.Errorf("%v does not name it", err)
			}
		}
		_, err := holdfast.New(e.client(e.Server().Options()), holdfast.WithLinger(time.Second), holdfast.WithReplicas(1, time.Second))
		e.WantErr(err, holdfast.ErrInvalidOption)
		keeping := e.Manager(keeps...)
		_, err = keeping.FairMutex(e.Key).TryLock(bg)
		e.WantErr(err, holdfast.ErrInvalidOption)
		fair, err := keeping.FairMutex(e.Key, holdfast.WithLinger(0)).TryLock(bg)
		redistest.Check(e, err)
		e.MustUnlock(fair)
	},
}
