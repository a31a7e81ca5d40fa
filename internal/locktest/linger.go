package locktest

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// keeps are options of a manager whose locks linger for as long as no other process asks. It finds out nothing by asking, and passes
// locks on in each mode of the suite.
var keeps = append(slices.Clone(byMessage), holdfast.WithLinger(time.Hour), holdfast.WithHandoffSlice(time.Hour))

// isIdle reports whether m keeps the lock and no caller has it.
func (e *Env) isIdle(m *holdfast.Manager) (l holdfast.LocalLock, is bool) {
	for l = range m.Locks() {
		if l.Name == e.Key && l.State == holdfast.LocalIdle {
			return l, true
		}
	}
	return l, false
}

// idle waits for that.
func (e *Env) idle(m *holdfast.Manager) (l holdfast.LocalLock) {
	e.Helper()
	e.Eventually("it lingers", func() (is bool) {
		l, is = e.isIdle(m)
		return is
	})
	return l
}

// lingering has m take the lock and give it up, and waits until it hears who wants it.
func (e *Env) lingering(m *holdfast.Manager, l holdfast.Locker) {
	e.Helper()
	before := e.inboxes()
	e.MustUnlock(e.MustLock(l))
	e.Eventually("the holder hears", func() bool { return e.inboxes() > before || m.Stats().Subscriptions > 0 && before > 0 })
	e.idle(m)
	e.quiet()
}

// owner is the one owner id in the lock.
func (e *Env) owner() string {
	e.Helper()
	for id := range e.Holders() {
		if id != "mode" {
			return id
		}
	}
	return ""
}

// lingerScenarios are about WithLinger.
var lingerScenarios = map[string]func(*Env){
	// Each caller of the process gets a lease of its own, and no command is sent.
	"OwnCallersNeedNoCommand": func(e *Env) {
		m := e.Manager(keeps...)
		l := e.Lock(m)
		e.lingering(m, l)
		owner, before := e.owner(), m.Stats().Commands
		for range 100 {
			lease := e.MustLock(l)
			e.Busy(l.TryLock)
			e.MustUnlock(lease)
			e.WantErr(lease.Unlock(bg), holdfast.ErrNotHeld)
			again := Got(e, l.TryLock, bg)
			e.MustUnlock(again)
		}
		if n := m.Stats().Commands - before; n != 0 || e.owner() != owner {
			e.Errorf("%d commands; owner %s, then %s", n, owner, e.owner())
		}
		info, err := e.Inspect(m)
		if err != nil || len(info.Holders) != 1 || !info.Holders[0].Idle || !info.Holders[0].Lingers {
			e.Errorf("%+v, %v", info, err)
		}
		elsewhere, err := e.Inspect(e.Manager())
		if err != nil || len(elsewhere.Holders) != 1 || elsewhere.Holders[0].Idle || !elsewhere.Holders[0].Lingers {
			e.Errorf("%+v, %v", elsewhere, err)
		}
		if s := m.Stats(); s.Held != 1 {
			e.Errorf("%+v", s)
		}
	},

	// The processes find out nothing by asking: each is told at once.
	"AnotherProcessGetsWhatLingers": func(e *Env) {
		a, b := e.Manager(keeps...), e.Manager(keeps...)
		e.lingering(a, e.Lock(a))
		for range 10 {
			e.MustUnlock(e.Soon("what the other keeps", e.Locking(e.Lock(b))))
			e.MustUnlock(e.Soon("what the other keeps", e.Locking(e.Lock(a))))
		}
		e.idle(a)
		for _, s := range []holdfast.Stats{a.Stats(), b.Stats()} {
			if s.Lost != 0 || s.RenewalFailures != 0 {
				e.Errorf("%+v", s)
			}
		}
	},

	// Where processes take turns, no caller finds the lock kept: it is given up at once, until one process has it for a while.
	"TurnsDoNotLinger": func(e *Env) {
		a, b := e.Manager(keeps...), e.Manager(keeps...)
		turn := func(m *holdfast.Manager) (lingers bool) {
			e.MustUnlock(e.Soon("the lock", e.Locking(e.Lock(m))))
			_, lingers = e.isIdle(m)
			return lingers
		}
		e.lingering(a, e.Lock(a))
		turns := 0
		for more := true; more; turns++ {
			if turns == 100 {
				e.Fatalf("it still lingers after %d turns", turns)
			}
			turn(b)
			more = turn(a)
		}
		if e.kind.Virtual && turns != 16 { // on a slow machine b may wait before a's Unlock
			e.Errorf("%d turns until it does not linger", turns)
		}
		for alone := 0; !turn(a); alone++ {
			if alone == 31 {
				e.Fatalf("%d Unlocks of one process, and none lingers", alone)
			}
		}
		turn(a)
		for range 2 { // of use once, it has another 16 turns
			turn(b)
			turn(a)
		}
		e.idle(a)
	},

	// A caller that waits while the lock is in use gets it from the Unlock, and the lock does not linger. One that only tries
	// is refused.
	"WaiterIsFirst": func(e *Env) {
		a, b := e.Manager(keeps...), e.Manager(byMessage...)
		e.lingering(a, e.Lock(a))
		held := e.MustLock(e.Lock(a))
		waiting := e.bystander(b)
		before := b.Stats().Commands
		e.Busy(e.Lock(b).TryLock)
		redistest.Want(e, b.Stats().Commands-before, 1, "%d commands beside a caller that waits")
		e.Passes(held, "the lock", waiting)
		e.Free()
		e.Clean(a)
	},

	"TryLockOfAnotherProcessGetsIt": func(e *Env) {
		a, b := e.Manager(keeps...), e.Manager(keeps...)
		e.lingering(a, e.Lock(a))
		for range 5 {
			for _, m := range []*holdfast.Manager{b, a} {
				lease, err := e.TryLock(e.Lock(m))
				if err != nil {
					e.Fatalf("TryLock of a lock that lingers: %v", err)
				}
				e.MustUnlock(lease)
			}
		}
	},

	// The holder answers, which is sooner than the patience of a TryLock is over. It does not linger after that.
	"TryLockOfALockInUseIsAnswered": func(e *Env) {
		a, b := e.Manager(keeps...), e.Manager(byMessage...)
		e.lingering(a, e.Lock(a))
		held := e.MustLock(e.Lock(a))
		began := time.Now()
		e.Busy(e.Lock(b).TryLock)
		if d := time.Since(began); e.kind.Virtual && d >= 50*time.Millisecond {
			e.Errorf("refused after %v", d)
		}
		e.Eventually("its place is gone", func() bool { return e.srv.Admin().Exists(bg, e.queue()).Val() == 0 })
		e.MustUnlock(held)
		e.Free()
		e.Clean(a)
	},

	"LingersForItsTime": func(e *Env) {
		const d = 3 * time.Second
		m := e.Manager(append(slices.Clone(keeps), holdfast.WithLinger(d))...)
		began := time.Now()
		e.MustUnlock(e.MustLock(e.Lock(m)))
		e.idle(m)
		e.Clean(m)
		if after := time.Since(began); after < d || e.kind.Virtual && after > d+prompt {
			e.Errorf("free after %v", after)
		}
	},

	"CloseFreesWhatLingers": func(e *Env) {
		m := e.Manager(keeps...)
		e.MustUnlock(e.MustLock(e.Lock(m)))
		e.idle(m)
		redistest.Check(e, m.Close(bg))
		e.Free()
		e.Clean(m)
	},

	// It lives for longer than its lease, and has a whole one for the next caller.
	"IdleLockIsRenewed": func(e *Env) {
		m := e.Manager(append(slices.Clone(keeps), holdfast.WithLease(lease))...)
		l := e.Lock(m)
		e.MustUnlock(e.MustLock(l))
		owner, before := e.owner(), m.Stats().Renewals
		e.Eventually("renewals", func() bool { return m.Stats().Renewals >= before+4 })
		e.idle(m)
		got := e.MustLock(l)
		if left := time.Until(got.Deadline()); e.owner() != owner || !got.Valid() || left < lease/2 {
			e.Errorf("owner %s, then %s; %v left", owner, e.owner(), left)
		}
		e.MustUnlock(got)
	},

	// Tokens are reserved ahead; when they are used up the lock is taken anew.
	"TokensGrowWhileItLingers": func(e *Env) {
		m := e.Manager(append(slices.Clone(keeps), holdfast.WithFencing())...)
		other := e.Manager(append(slices.Clone(byMessage), holdfast.WithFencing())...)
		last, before := uint64(0), m.Stats().Commands
		next := func(l holdfast.Locker) {
			e.Helper()
			got := e.Soon("the lock", e.Locking(l))
			if got.Token() <= last {
				e.Errorf("token %d after %d", got.Token(), last)
			}
			last = got.Token()
			e.MustUnlock(got)
		}
		for range 300 {
			next(e.Lock(m))
		}
		redistest.WantMost(e, m.Stats().Commands-before, 12, "%d commands for 300 pairs")
		next(e.Lock(other))
		next(e.Lock(m))
	},

	"MaxHoldIsOfEachGrant": func(e *Env) {
		const most = 2 * lease
		m := e.Manager(append(slices.Clone(keeps), holdfast.WithLease(lease), holdfast.WithMaxHold(most))...)
		l := e.Lock(m)
		e.MustUnlock(e.MustLock(l))
		e.idle(m)
		owner := e.owner()
		e.Eventually("it has lingered for long", func() bool { return m.Stats().Renewals >= 5 })
		began := time.Now()
		got := e.MustLock(l)
		if e.owner() != owner {
			e.Errorf("owner %s, then %s", owner, e.owner())
		}
		<-got.Done()
		e.WantErr(got.Err(), holdfast.ErrMaxHold)
		if d := time.Since(began); d < most-time.Millisecond {
			e.Errorf("its time was over after %v", d)
		}
		e.WantErr(got.Unlock(bg), holdfast.ErrMaxHold)
		e.Free()
	},

	// A caller with other options cannot use what Redis has: the lock is taken anew.
	"OtherOptionsTakeItAnew": func(e *Env) {
		m := e.Manager(keeps...)
		e.MustUnlock(e.MustLock(e.Lock(m)))
		e.idle(m)
		owner := e.owner()
		got, err := e.TryLock(e.Lock(m, holdfast.WithLease(time.Minute)))
		redistest.Must(e, err)
		if e.owner() == owner {
			e.Error("it was taken with the options of another caller")
		}
		e.MustUnlock(got)
		got = e.MustLock(e.Lock(m, holdfast.WithLinger(0)))
		if id := e.owner(); strings.Contains(id, ":0") {
			e.Errorf("%s says that it may linger", id)
		}
		e.MustUnlock(got)
		e.Clean(m)
	},

	// A lease that Extend has prolonged would stay for longer than others know.
	"ExtendedLeaseDoesNotLinger": func(e *Env) {
		m := e.Manager(append(slices.Clone(keeps), holdfast.WithLease(lease))...)
		got := e.MustLock(e.Lock(m))
		redistest.Must(e, got.Extend(bg, time.Hour))
		e.MustUnlock(got)
		e.Free()
		e.Clean(m)
	},
}
