package locktest

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

var rwQueueScenarios = map[string]func(*Env){
	// One release lets in all readers in front, of whatever processes: none of them waits for
	// another to leave.
	"ReadersOfThreeProcessesComeInTogether": func(e *Env) {
		held := e.MustLock(e.RW(e.Manager(byMessage...)))
		var behind []<-chan *holdfast.Lease
		for range 3 {
			m := e.Manager(byMessage...)
			behind = append(behind, e.standby(e.RW(m).RLocker()), e.Locking(e.RW(m).RLocker()))
			e.Parked(m, 2)
		}
		e.MustUnlock(held)
		var inside []*holdfast.Lease
		for _, r := range behind {
			inside = append(inside, e.Soon("a reader", r))
		}
		redistest.Want(e, len(e.Holders()), 3, "%d holders")
		e.MustUnlock(inside...)
	},

	// The lock is free, and the reader that waits for it was not notified: one that does not wait
	// lets it in, and comes in as well.
	"TryRLockLetsReadersIn": func(e *Env) {
		m, other, third := e.Manager(byMessage...), e.Manager(byMessage...), e.Manager()
		gone := e.MustLock(e.RW(m))
		waiting := e.InQueue(1, e.RW(other).RLocker())
		e.Eventually("it has asked again, once it heard messages", func() bool { return e.srv.CommandCalls("eval", "evalsha") >= 3 })
		e.srv.Admin().Del(bg, e.Key)
		got, err := e.TryLock(e.RW(third).RLocker())
		redistest.Must(e, err)
		e.MustUnlock(e.Soon("the reader who waits", waiting))
		e.MustUnlock(got)
		e.WantErr(gone.Unlock(bg), holdfast.ErrLeaseLost)
		e.Clean(other)
		e.Clean(third)
	},

	// The lock is free, and its readers were not notified: the first one that asks brings the others in.
	"ReaderThatAsksBringsOthersIn": func(e *Env) {
		m, asks, silent := e.Manager(byMessage...), e.Manager(), e.Manager(byMessage...)
		gone := e.MustLock(e.RW(m))
		first := e.InQueue(1, e.RW(asks).RLocker())
		second := e.InQueue(2, e.RW(silent).RLocker())
		e.Eventually("it has asked again, once it heard messages", func() bool { return silent.Stats().Commands >= 2 })
		e.srv.Admin().Del(bg, e.Key)
		one := e.Soon("the reader that asks", first)
		e.MustUnlock(e.Soon("the reader behind", second))
		e.MustUnlock(one)
		e.WantErr(gone.Unlock(bg), holdfast.ErrLeaseLost)
		e.Clean(asks)
		e.Clean(silent)
	},

	// A writer in the middle gives up: the readers behind it come in at once, in its process
	// and in others, also if its process has no other caller.
	"CancelledWriterLetsReadersIn": func(e *Env) {
		for _, c := range []struct{ local, alone bool }{{true, false}, {false, false}, {false, true}} {
			a, b := e.Manager(byMessage...), e.Manager(byMessage...)
			w := b
			if c.local {
				w = a
			}
			first := e.MustRLock(e.RW(a))
			ctx, cancel := context.WithCancel(bg)
			writer := e.RW(w).LockAsync(ctx)
			e.Queued(1)
			e.Listening(1) // it has been refused
			var behind []<-chan *holdfast.Lease
			if !c.alone {
				behind = append(behind, e.Locking(e.RW(w).RLocker()))
				e.Parked(w, 2)
			}
			elsewhere := e.Manager(byMessage...)
			behind = append(behind, e.Locking(e.RW(elsewhere).RLocker()))
			e.Queued(2)
			e.Listening(2) // so has this one
			cancel()
			e.WantErr((<-writer).Err, holdfast.ErrNotAcquired, context.Canceled)
			for _, r := range behind {
				e.MustUnlock(e.Soon("a reader behind the writer", r))
			}
			redistest.Want(e, first.Valid(), true, "the first reader is out")
			e.MustUnlock(first)
			for _, m := range []*holdfast.Manager{a, b, elsewhere} {
				e.Clean(m, Tombstones)
			}
		}
	},

	// A process dies, or stands still, while its writer is next: the readers behind it come
	// in when its place has run out.
	"DeadWriterIsDropped": func(e *Env) {
		e.Server()
		for _, stop := range []func(*redistest.Process){(*redistest.Process).Kill, (*redistest.Process).Pause} {
			m := e.Manager()
			first := e.MustRLock(e.RW(m))
			p := redistest.StartProcess(e, HolderRole, "write", e.srv.Addr(), e.srv.Password(), e.Key, lease.String())
			e.Queued(1)
			b := e.Manager()
			behind := e.InQueue(2, e.RW(b).RLocker())
			stop(p)
			e.MustUnlock(e.Soon("the reader behind", behind))
			e.MustUnlock(first)
			p.Kill()
			e.Clean(m)
			e.Clean(b)
		}
	},

	// It is its turn when it is dead or stands still: the grant costs the others no more
	// than a claim's TTL.
	"GrantToADeadWaiterIsBounded": func(e *Env) {
		e.Server()
		defer func() {
			if e.Failed() {
				e.Logf("holders %v, TTL %v", e.Holders(), e.PTTL())
			}
		}()
		for name, stop := range map[string]func(*redistest.Process){"killed": (*redistest.Process).Kill, "paused": (*redistest.Process).Pause} {
			for _, side := range []string{"write", "read"} {
				m := e.Manager()
				held := e.MustLock(e.RW(m))
				p := redistest.StartProcess(e, HolderRole, side, e.srv.Addr(), e.srv.Password(), e.Key, "20s")
				e.Queued(1)
				e.Listening(1)
				b := e.Manager()
				behind := e.InQueue(2, e.RW(b))
				stop(p)
				e.MustUnlock(held)
				got := e.Soon(name+" "+side+": the writer behind", behind) // not when p's lease would end
				if holders := e.Holders(); len(holders) != 1 {
					e.Errorf("%s %s: holders %v", name, side, holders)
				}
				e.MustUnlock(got)
				p.Kill()
				e.Clean(m, Tombstones)
				e.Clean(b, Tombstones)
			}
		}
	},

	// A manager closes with waiters in the middle.
	"ClosedManagerLeavesTheQueue": func(e *Env) {
		a, b := e.Manager(byMessage...), e.Manager(byMessage...)
		first := e.MustRLock(e.RW(a))
		writer := e.RW(b).LockAsync(bg)
		reader := e.RW(b).RLockAsync(bg)
		e.Queued(1)
		behind := e.InQueue(2, e.RW(e.Manager(byMessage...)).RLocker())
		redistest.Check(e, b.Close(bg))
		e.WantErr((<-writer).Err, holdfast.ErrClosed)
		e.WantErr((<-reader).Err, holdfast.ErrClosed)
		e.MustUnlock(e.Soon("the reader behind", behind))
		e.MustUnlock(first)
		e.Clean(a, Tombstones)
	},

	// A manager closes with readers inside: they end, and the writer comes in.
	"ClosedManagerReleasesItsReaders": func(e *Env) {
		a, b := e.Manager(byMessage...), e.Manager(byMessage...)
		shared, own := e.MustRLock(e.RW(b)), e.MustRLock(e.RW(b, holdfast.WithFixedLease(time.Hour)))
		writer := e.InQueue(1, e.RW(a))
		redistest.Check(e, b.Close(bg))
		e.WantErr(shared.Err(), holdfast.ErrClosed)
		e.WantErr(own.Unlock(bg), holdfast.ErrClosed)
		e.MustUnlock(e.Soon("the writer", writer))
		e.Clean(a)
	},
}
