package locktest

import (
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// rwLingerScenarios are about WithLinger and the two sides of a read-write lock.
var rwLingerScenarios = map[string]func(*Env){
	// Readers of several processes linger: a writer elsewhere gets the lock when all have given it up.
	"ReadersLingerUntilAWriterComes": func(e *Env) {
		a, b, other := e.Manager(keeps...), e.Manager(keeps...), e.Manager(byMessage...)
		for range 3 {
			e.MustUnlock(e.MustRLock(e.RW(a)))
			e.MustUnlock(e.MustRLock(e.RW(b)))
			e.idle(a)
			e.idle(b)
			before := a.Stats().Commands + b.Stats().Commands
			for range 10 {
				first := e.MustRLock(e.RW(a))
				second := e.MustRLock(e.RW(a))
				e.MustUnlock(first, second)
				e.MustUnlock(e.MustRLock(e.RW(b)))
			}
			if n := a.Stats().Commands + b.Stats().Commands - before; n > 2 { // questions, as the inbox is heard
				e.Errorf("%d commands of readers", n)
			}
			e.MustUnlock(e.Soon("the write side", e.Locking(e.RW(other))))
		}
	},

	// A process that Redis denies messages keeps nothing, and its readers share what they hold, as without WithLinger.
	"DeniedReadersShare": func(e *Env) {
		e.Server()
		e.permit("deaf", "-subscribe")
		u := e.denied("deaf", keeps...)
		e.Eventually("it does not linger", func() bool {
			e.MustUnlock(e.MustRLock(e.RW(u.m)))
			return len(e.Holders()) == 0
		})
		first := e.MustRLock(e.RW(u.m))
		before := u.m.Stats().Commands
		second := e.MustRLock(e.RW(u.m))
		redistest.Want(e, u.m.Stats().Commands-before, 0, "%d commands of the second reader")
		e.MustUnlock(first, second)
	},

	"WriterAsksAllReaders": func(e *Env) {
		a, b, other := e.Manager(keeps...), e.Manager(keeps...), e.Manager(byMessage...)
		e.lingering(a, e.RW(a).RLocker())
		e.lingering(b, e.RW(b).RLocker())
		got, err := e.TryLock(e.RW(other))
		redistest.Must(e, err)
		e.MustUnlock(got)
		e.lingering(a, e.RW(a).RLocker())
		inside := e.MustRLock(e.RW(b))
		e.Busy(e.RW(other).TryLock)
		e.MustUnlock(inside)
		e.MustUnlock(e.Soon("the write side", e.Locking(e.RW(other))))
	},

	// A reader wants what a writer keeps, here and elsewhere, and the other way round.
	"SidesGiveWay": func(e *Env) {
		a, other := e.Manager(keeps...), e.Manager(byMessage...)
		for range 3 {
			e.lingering(a, e.RW(a))
			e.MustUnlock(e.MustRLock(e.RW(a)))
			e.MustUnlock(e.MustLock(e.RW(a)))
			e.idle(a)
			got, err := answered(e, func() (*holdfast.Lease, error) { return e.RW(other).TryRLock(bg) })
			redistest.Must(e, err)
			e.MustUnlock(got)
			e.MustUnlock(e.MustLock(e.RW(a)))
			e.MustUnlock(e.Soon("the read side", e.Locking(e.RW(other).RLocker())))
		}
	},

	// After a downgrade the read side lingers, once Redis has confirmed it.
	"DowngradedReaderLingers": func(e *Env) {
		m, other := e.Manager(keeps...), e.Manager(byMessage...)
		write, read := e.bothSides(e.RW(m))
		e.MustUnlock(write)
		e.MustUnlock(e.MustRLock(e.RW(other))) // readers come in
		e.MustUnlock(read)
		e.idle(m)
		before := m.Stats().Commands
		e.MustUnlock(e.MustRLock(e.RW(m)))
		redistest.WantMost(e, m.Stats().Commands-before, 1, "%d commands")
		e.MustUnlock(e.Soon("the write side", e.Locking(e.RW(other))))
	},

	// Tokens of readers that come one after the other grow; those inside together share one.
	"TokensOfReadersGrow": func(e *Env) {
		m := e.Manager(append(keeps[:len(keeps):len(keeps)], holdfast.WithFencing())...)
		last := uint64(0)
		for range 200 {
			got := e.MustRLock(e.RW(m))
			if got.Token() <= last {
				e.Fatalf("token %d after %d", got.Token(), last)
			}
			last = got.Token()
			e.MustUnlock(got)
		}
	},

	// Two holds of one process with other options: one lingers at a time, and a writer of the process gets in.
	"OwnWriterGetsIn": func(e *Env) {
		m := e.Manager(keeps...)
		e.MustUnlock(e.MustRLock(e.RW(m)))
		e.idle(m)
		second := e.MustRLock(e.RW(m, holdfast.WithLease(time.Minute)))
		e.MustUnlock(second)
		e.idle(m)
		e.MustUnlock(e.Soon("the write side", e.Locking(e.RW(m))))
		got, err := e.TryLock(e.RW(m))
		redistest.Must(e, err)
		e.MustUnlock(got)
	},
}
