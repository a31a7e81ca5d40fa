package locktest

import (
	"context"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

const (
	// shortStay is a time that scenarios wait for, and longStay one that they do not.
	shortStay = 2 * time.Second
	longStay  = time.Hour
)

// stayOf matches requests that give a lock up and leave it taken.
func stayOf(key string) redistest.Match {
	return func(cmd []string) bool {
		keys, argv, ok := redistest.ScriptCall(cmd)
		return ok && len(keys) > 3 && len(argv) > 3 && keys[0] == key && strings.HasPrefix(argv[0], "hf-") && strings.HasPrefix(argv[1], "hf-")
	}
}

// wantTaken fails unless the lock is taken for as long as a long stay.
func (e *Env) wantTaken(by holdfast.Locker) {
	e.Helper()
	e.Busy(by.TryLock)
	if ttl := e.PTTL(); ttl > longStay || ttl < longStay-patience-prompt {
		e.Errorf("it is taken for %v", ttl)
	}
	info, err := e.Inspect(e.Manager())
	if err != nil || !info.Held || len(info.Holders) != 1 {
		e.Errorf("Inspect: %+v, %v", info, err)
	}
}

// stayScenarios are about WithHoldAtLeast.
var stayScenarios = map[string]func(*Env){
	// Waiters here and elsewhere come in one after the other when it is over, woken by the end and not by a poll, and their
	// tokens grow.
	"WaitersComeWhenTheStayIsOver": func(e *Env) {
		m, other := e.Manager(byMessage...), e.Manager(byMessage...)
		began := time.Now()
		first := e.MustLock(e.Lock(m, holdfast.WithHoldAtLeast(shortStay), holdfast.WithFencing()))
		there := e.Locking(e.Lock(other, holdfast.WithFencing()))
		e.Listening(1)
		here := e.Parking(m, 1, e.Lock(m, holdfast.WithFencing()))
		token := first.Token()
		e.MustUnlock(first)
		e.WantErr(first.Err(), holdfast.ErrReleased)
		e.WantErr(first.Unlock(bg), holdfast.ErrNotHeld)
		for range 2 {
			var next *holdfast.Lease
			select {
			case next = <-there:
			case next = <-here:
			case <-time.After(patience):
				e.Fatal("no waiter was woken at the end")
			}
			if next == nil {
				e.FailNow()
			}
			if d := time.Since(began); d < shortStay {
				e.Errorf("the next owner came after %v", d)
			}
			if next.Token() <= token {
				e.Errorf("token %d after %d", next.Token(), token)
			}
			token = next.Token()
			e.MustUnlock(next)
		}
		e.Clean(m, Tokens)
	},

	// A waiter of another process knows of the lease's end, in an hour. It is told of the new one: no caller of the holder's
	// process waits, which would ask then.
	"WaitersElsewhereAreToldOfTheEnd": func(e *Env) {
		m, other := e.Manager(byMessage...), e.Manager(byMessage...)
		held := e.MustLock(e.Lock(m, holdfast.WithHoldAtLeast(shortStay)))
		next := e.Locking(e.Lock(other))
		e.Listening(1)
		e.Passes(held, "the waiter elsewhere", next)
		e.Clean(m)
	},

	// So are those of Redisson, which listen to the lock's channel.
	"RedissonIsToldOfTheEnd": func(e *Env) {
		m := e.Manager()
		held := e.MustLock(e.Lock(m, holdfast.WithHoldAtLeast(longStay)))
		sub := e.srv.Admin().Subscribe(bg, e.Channel(e.Key))
		defer sub.Close()
		redistest.Must(e, ErrOf(sub.Receive(bg)))
		e.MustUnlock(held)
		redistest.Next(e, sub.Channel(), "no message")
	},

	"UnlockLeavesItTaken": func(e *Env) {
		m, other := e.Manager(), e.Manager()
		l := e.Lock(m, holdfast.WithHoldAtLeast(longStay))
		held := e.MustLock(l)
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		next := e.kind.Async(l, ctx) // it is not handed on inside the process
		e.Parked(m, 1)
		e.MustUnlock(held)
		e.wantTaken(e.Lock(other))
		cancel()
		e.WantErr((<-next).Err, holdfast.ErrNotAcquired)
		e.wantTaken(l)
		e.wantTaken(e.Lock(other))
		renewals := m.Stats().Renewals
		if m.Stats().Held != 0 || renewals != 0 {
			e.Errorf("the process still has it: %+v", m.Stats())
		}
		if freed, err := e.ForceUnlock(other); !freed || err != nil {
			e.Error(freed, err)
		}
		e.MustUnlock(e.MustLock(e.Lock(other)))
		e.Clean(m)
	},

	// It is the key in Redis that does it: the process may end.
	"CloseLeavesItTaken": func(e *Env) {
		m, other := e.Manager(), e.Manager()
		held := e.MustLock(e.Lock(m, holdfast.WithHoldAtLeast(longStay)))
		redistest.Check(e, m.Close(bg))
		e.WantErr(held.Err(), holdfast.ErrClosed)
		e.wantTaken(e.Lock(other))
	},

	"AfterTheTimeUnlockReleases": func(e *Env) {
		m, other := e.Manager(), e.Manager(byMessage...)
		held := e.MustLock(e.Lock(m, holdfast.WithHoldAtLeast(time.Millisecond)))
		next := e.Locking(e.Lock(other))
		e.Listening(1)
		e.Passes(held, "the hand-off", next)
		e.Clean(m)
	},

	// The time runs from the first lease of the owner, and the lock stays with the last one.
	"ReentryEndsWithTheLastLease": func(e *Env) {
		m, other := e.Manager(), e.Manager()
		l := e.Lock(m, holdfast.WithHoldAtLeast(longStay))
		outer := e.MustLock(l)
		inner := Got(e, l.Lock, outer.Context(bg))
		e.MustUnlock(outer)
		if m.Stats().Held != 1 || !inner.Valid() {
			e.Errorf("the inner lease has ended: %v", inner.Err())
		}
		e.MustUnlock(inner)
		e.wantTaken(e.Lock(other))
	},

	// A renewal that was on its way finds the owner gone, and sets no longer TTL.
	"LateRenewalDoesNotProlongTheStay": func(e *Env) {
		m, p := e.Via(holdfast.WithLease(4 * lease))
		l := e.MustLock(e.Lock(m, holdfast.WithHoldAtLeast(2*lease)))
		gate := p.HoldFirstRequest(renewOf(e.Key))
		gate.Wait(e)
		e.MustUnlock(l)
		gate.Release()
		e.MustUnlock(e.MustLock(e.Lock(e.Manager()))) // within the patience, which is shorter than the lease
		e.Clean(m)
	},

	// A request whose answer is lost is repeated, and counts once.
	"LostAnswerLeavesItTaken": func(e *Env) {
		m, p := e.Via()
		l := e.MustLock(e.Lock(m, holdfast.WithHoldAtLeast(longStay)))
		p.LoseReply(stayOf(e.Key), 1)
		e.MustUnlock(l)
		e.wantTaken(e.Lock(e.Manager()))
	},

	// A caller that was gone when the grant came has done nothing: nothing stays taken.
	"GrantToACallerThatLeftIsReleased": func(e *Env) {
		m, p := e.Via()
		gate := p.HoldFirstReply(acquireOf(e.Key))
		ctx, cancel := context.WithCancel(bg)
		failed := redistest.Begin(func() error { _, err := e.Lock(m, holdfast.WithHoldAtLeast(longStay)).Lock(ctx); return err })
		gate.Wait(e)
		cancel()
		e.WantErr(<-failed, context.Canceled)
		gate.Release()
		e.MustUnlock(e.MustLock(e.Lock(e.Manager())))
	},

	// What has been deleted is a loss as without the option, and is not taken again.
	"DeletedLockDoesNotStay": func(e *Env) {
		m := e.Manager()
		l := e.MustLock(e.Lock(m, holdfast.WithLease(time.Hour), holdfast.WithHoldAtLeast(longStay)))
		e.srv.Admin().Del(bg, e.Key)
		e.WantErr(l.Unlock(bg), holdfast.ErrLeaseLost)
		redistest.Want(e, e.srv.Admin().Exists(bg, e.Key).Val(), 0, "Unlock made the key again")
		e.Clean(m)
	},
}

// rwStayScenarios are likewise about the two sides of a read-write lock.
var rwStayScenarios = map[string]func(*Env){
	// Each reader stays by itself; other readers come in, and a writer waits for the last.
	"ReaderStaysAndKeepsWritersOut": func(e *Env) {
		m, other := e.Manager(byMessage...), e.Manager(byMessage...)
		began := time.Now()
		reader := e.MustRLock(e.RW(m, holdfast.WithHoldAtLeast(shortStay)))
		beside, alike := e.MustRLock(e.RW(m)), e.MustRLock(e.RW(m, holdfast.WithHoldAtLeast(shortStay)))
		redistest.Want(e, m.Stats().Held, 3, "%d holds, want one for each")
		e.MustUnlock(alike, beside)
		writer := e.InQueue(1, e.RW(other))
		e.Listening(1)
		e.MustUnlock(reader)
		l := e.Soon("the writer", writer)
		if d := time.Since(began); d < shortStay {
			e.Errorf("the writer came after %v", d)
		}
		e.MustUnlock(l)
		e.Clean(m)
	},

	"DowngradeKeepsWritersOut": func(e *Env) {
		m, other := e.Manager(), e.Manager()
		write, read := e.bothSides(e.RW(m, holdfast.WithHoldAtLeast(longStay)))
		e.MustUnlock(write)
		e.MustUnlock(e.MustRLock(e.RW(other))) // readers come in
		e.Busy(e.RW(other).TryLock)
		e.MustUnlock(read)
		e.wantTaken(e.RW(other))
		e.MustUnlock(e.MustRLock(e.RW(other)))
	},

	// The downgrade is unanswered when the read side ends: whichever side Redis has stays taken.
	"UnansweredDowngradeStays": func(e *Env) {
		e.Server()
		for _, hold := range []func(*redistest.Proxy, redistest.Match) *redistest.Gate{
			(*redistest.Proxy).HoldReply,        // it has the read side
			(*redistest.Proxy).HoldFirstRequest, // it has the write side, and the downgrade comes late
		} {
			m, p := e.Via()
			write, read := e.bothSides(e.RW(m, holdfast.WithHoldAtLeast(longStay)))
			gate := hold(p, downgradeOf(e.Key))
			first := redistest.Begin(func() error { return write.Unlock(bg) })
			gate.Wait(e)
			second := redistest.Begin(func() error { return read.Unlock(bg) })
			e.Eventually("the read side is given up", func() bool { return read.Err() != nil })
			gate.Release()
			<-first
			<-second
			e.Eventually("one owner is left", func() bool { return len(e.Holders()) == 1 })
			e.wantTaken(e.RW(e.Manager()))
			if freed, err := e.ForceUnlock(m); !freed || err != nil {
				e.Error(freed, err)
			}
		}
	},
}
