package locktest

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// told are options of managers that are told of waiters of other processes.
var told = append(slices.Clone(byMessage), holdfast.WithWanted())

// wantedWithin fails unless the lease is wanted in that time.
func (e *Env) wantedWithin(d time.Duration, l *holdfast.Lease) {
	e.Helper()
	began := time.Now()
	select {
	case <-l.Wanted():
	case <-time.After(e.bound(d)):
		e.Errorf("it is not wanted after %v", time.Since(began))
	}
}

// unwanted fails if the lease is wanted.
func (e *Env) unwanted(l *holdfast.Lease) {
	e.Helper()
	select {
	case <-l.Wanted():
		e.Error("it is wanted")
	default:
	}
}

// wantedBothScenarios are about Lease.Wanted, for what every kind of lock has, and for the read side. Wanted is closed at the next
// question, which comes once a second, or by a message: within a round trip, which takes no time in fake time.
var wantedBothScenarios = map[string]func(*handed){
	// W1: by a caller of the same process, at once; and the next one gets a lease of its own.
	"ByACallerHere": func(e *handed) {
		m := e.Manager(byMessage...)
		l := e.MustLock(e.ours(m))
		if once, again := l.Wanted(), l.Wanted(); once != again {
			e.Error("two channels")
		}
		time.Sleep(3 * time.Second)
		e.unwanted(l)
		waiting := e.Locking(e.Lock(m))
		e.wantedWithin(time.Millisecond, l)
		e.MustUnlock(l)
		next := e.Soon("the waiter", waiting)
		time.Sleep(3 * time.Second)
		e.unwanted(next)
		waiting = e.InQueue(1, e.Lock(e.Manager(byMessage...)))
		e.wantedWithin(time.Second+100*time.Millisecond, next) // the process asks for this one, as it did for the one before
		e.Passes(next, "the waiter", waiting)

		l = e.MustLock(e.ours(m))
		waiting = e.Parking(m, 1, e.Lock(m))
		e.wantedWithin(time.Millisecond, l) // it was here before the call
		e.Passes(l, "the waiter", waiting)
		e.Clean(m)
	},

	// W1, W2: the waiter sends no message, and does not poll.
	"ByAnotherProcess": func(e *handed) {
		m := e.Manager(byMessage...)
		l := e.MustLock(e.ours(m))
		time.Sleep(3 * time.Second)
		e.unwanted(l)
		waiting := e.InQueue(1, e.Lock(e.Manager(byMessage...)))
		e.wantedWithin(time.Second+100*time.Millisecond, l)
		e.Passes(l, "the waiter", waiting)

		if twin := e.twin(m); twin != nil {
			l = e.MustLock(e.ours(m))
			waiting = e.InQueue(1, twin)
			e.wantedWithin(time.Second+100*time.Millisecond, l)
			e.Passes(l, "the waiter of the other kind", waiting)
		}
	},

	// Without a question of the holder; and if the message comes before the call of Wanted.
	"ByAMessage": func(e *handed) {
		m := e.Manager(told...)
		for _, early := range []bool{false, true} {
			l := e.MustLock(e.ours(m))
			if !early {
				l.Wanted()
			}
			e.Eventually("the holder hears", func() bool { return e.inboxes() > 0 })
			before := m.Stats().Commands
			waiting := e.InQueue(1, e.Lock(e.Manager(byMessage...)))
			if early {
				e.quiet()
			}
			e.wantedWithin(100*time.Millisecond, l)
			if n := m.Stats().Commands - before; n != 0 && e.kind.Virtual {
				e.Errorf("%d questions", n)
			}
			e.Passes(l, "the waiter", waiting)
		}
		e.Clean(m)
	},

	// Of two waiters the first one gets the lock, and the other one wants it at once.
	"ByTheNextInTheQueue": func(e *handed) {
		for _, options := range [][]holdfast.Option{byMessage, told} {
			first := e.MustLock(e.Lock(e.Manager(byMessage...)))
			m, other := e.Manager(options...), e.Manager(byMessage...)
			second := e.InQueue(1, e.ours(m))
			third := e.InQueue(2, e.Lock(other))
			e.MustUnlock(first)
			l := e.Soon("the second", second)
			e.wantedWithin(100*time.Millisecond, l)
			e.Passes(l, "the third", third)
		}
	},

	// W1: by one that has left before the next caller of the process has the lock.
	"OfBeforeIsNothingToTheNext": func(e *handed) {
		m := e.Manager(append(slices.Clone(told), holdfast.WithHandoffSlice(time.Hour))...)
		l := e.MustLock(e.Lock(m))
		l.Wanted()
		ctx, leave := context.WithCancel(bg)
		left := redistest.Begin(func() error { _, err := e.Lock(e.Manager(byMessage...)).Lock(ctx); return err })
		e.wantedWithin(time.Second+100*time.Millisecond, l)
		leave()
		e.WantErr(<-left, context.Canceled)
		e.Queued(0)
		waiting := e.Parking(m, 1, e.Lock(m))
		e.MustUnlock(l)
		next := e.Soon("the next", waiting)
		next.Wanted()
		time.Sleep(3 * time.Second)
		e.unwanted(next)
		e.MustUnlock(next)
	},

	// W2: the waiter has told the ticket's owner id, which no process hears.
	"ByAWaiterForATicket": func(e *handed) {
		m := e.Manager(told...)
		another := e.MustLock(m.Mutex("another"))
		e.Eventually("the process hears", func() bool { return e.inboxes() > 0 })
		ticket := e.mustDetach(e.MustLock(e.ours(m)), longStay)
		waiting := e.InQueue(1, e.Lock(e.Manager(byMessage...)))
		e.quiet()
		l := e.mustAttach(m, ticket)
		e.wantedWithin(100*time.Millisecond, l)
		e.Passes(l, "the waiter", waiting)
		e.MustUnlock(another)
		e.Clean(m)
	},

	// W3.
	"NotAskedForCostsNothing": func(e *handed) {
		m := e.Manager(byMessage...)
		l := e.MustLock(e.ours(m))
		time.Sleep(time.Second)
		before := m.Stats().Commands
		waiting := e.InQueue(1, e.Lock(e.Manager(byMessage...)))
		time.Sleep(5 * time.Second)
		redistest.Want(e, m.Stats().Commands-before, 0, "%d commands")
		e.Passes(l, "the waiter", waiting)
	},

	// One question a second and lock, however many ask; and none when the lease has ended.
	"AsksOnceASecond": func(e *handed) {
		m := e.Manager(byMessage...)
		l := e.MustLock(e.ours(m, holdfast.WithMaxHold(2*time.Hour)))
		again, err := e.ours(m).Lock(l.Context(bg))
		if err != nil {
			e.Fatal(err)
		}
		before := m.Stats().Commands
		l.Wanted()
		again.Wanted()
		time.Sleep(5*time.Second + 500*time.Millisecond)
		if n := m.Stats().Commands - before; n > 7 || e.kind.Virtual && n != 6 { // one at the first call
			e.Errorf("%d commands in 5.5 s", n)
		}
		e.MustUnlock(again, l)
		before = m.Stats().Commands
		time.Sleep(3 * time.Second)
		redistest.Want(e, m.Stats().Commands-before, 0, "%d commands after that")
		e.Clean(m)
	},

	// It does not wait: it asks nothing, and costs no more.
	"ATryLockDoesNotWant": func(e *handed) {
		m, other := e.Manager(told...), e.Manager()
		l := e.MustLock(e.ours(m))
		l.Wanted()
		e.Eventually("the holder hears", func() bool { return e.inboxes() > 0 })
		e.Busy(e.Lock(other).TryLock)
		if n := other.Stats().Commands; n != 1 && e.kind.Virtual {
			e.Errorf("%d commands", n)
		}
		e.Busy(e.Lock(m).TryLock)
		time.Sleep(2 * time.Second)
		e.unwanted(l)
		e.MustUnlock(l)
		e.Clean(m)
	},

	// W2: the message is lost, and the waiter does not poll.
	"LostMessageIsMadeUpFor": func(e *handed) {
		m, p := e.Via(told...)
		l := e.MustLock(e.ours(m))
		l.Wanted()
		e.Eventually("the holder hears", func() bool { return e.inboxes() > 0 })
		gate := e.Deafen(m, p)
		defer gate.Release()
		waiting := e.InQueue(1, e.Lock(e.Manager(byMessage...)))
		e.wantedWithin(time.Second+100*time.Millisecond, l)
		e.Passes(l, "the waiter", waiting)
	},

	// Those of Redisson only listen.
	"ByRedisson": func(e *handed) {
		m := e.Manager(told...)
		l := e.MustLock(e.ours(m))
		time.Sleep(2 * time.Second)
		e.unwanted(l)
		sub := e.srv.Admin().Subscribe(bg, e.Channel(e.Key))
		defer sub.Close()
		redistest.Must(e, ErrOf(sub.Receive(bg)))
		e.wantedWithin(time.Second+100*time.Millisecond, l)
		e.MustUnlock(l)
	},

	// A lease that has ended stays as it was: its caller has nothing left to give up.
	"StaysOpenAfterTheEnd": func(e *handed) {
		m := e.Manager(byMessage...)
		before, after := e.MustLock(e.ours(m)), (*holdfast.Lease)(nil)
		before.Wanted()
		e.MustUnlock(before)
		held := e.MustLock(e.ours(m))
		waiting := e.Parking(m, 1, e.Lock(m))
		time.Sleep(3 * time.Second)
		e.unwanted(before)
		e.unwanted(after)
		e.MustUnlock(held)
		e.unwanted(held)
		e.MustUnlock(e.Soon("the waiter", waiting))
		e.Clean(m)
	},
}

var (
	wantedScenarios = forWriters(wantedBothScenarios)

	rwWantedScenarios = forReaders(wantedBothScenarios, map[string]func(*Env){
		// W4: readers do not want what readers have. A writer wants it of each.
		"ReadersWantOfWritersOnly": func(e *Env) {
			for _, options := range [][]holdfast.Option{byMessage, told} {
				m := e.Manager(options...)
				a := e.MustRLock(e.RW(m))
				a.Wanted()
				b, elsewhere := e.MustRLock(e.RW(m, holdfast.WithMaxHold(time.Hour))), e.MustRLock(e.RW(e.Manager(byMessage...)))
				b.Wanted()
				c := e.MustRLock(e.RW(m))
				time.Sleep(2 * time.Second)
				for _, l := range []*holdfast.Lease{a, b, c} {
					e.unwanted(l)
				}
				writing := e.InQueue(1, e.RW(e.Manager(byMessage...)))
				e.wantedWithin(time.Second+100*time.Millisecond, a)
				for _, l := range []*holdfast.Lease{b, c} {
					e.wantedWithin(time.Millisecond, l) // all know at once
				}
				e.MustUnlock(a, b, c, elsewhere)
				e.MustUnlock(e.Soon("the writer", writing))
			}
		},

		// A writer that has become a reader still knows.
		"WantedGoesWithADowngrade": func(e *Env) {
			m := e.Manager(told...)
			write, read := e.bothSides(e.RW(m))
			read.Wanted()
			e.MustUnlock(write)
			e.Eventually("the holder hears", func() bool { return e.inboxes() > 0 })
			writing := e.InQueue(1, e.RW(e.Manager(byMessage...)))
			e.wantedWithin(time.Second+100*time.Millisecond, read)
			e.Passes(read, "the writer", writing)
		},
	})
)
