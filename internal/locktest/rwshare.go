package locktest

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

var rwShareScenarios = map[string]func(*Env){
	// Another reader of the process is inside, and not in the way: that Redis is silent is no refusal.
	"TroubleBesideAReader": func(e *Env) {
		m, p := e.Via()
		for _, opt := range []holdfast.LockOption{holdfast.WithFixedLease(time.Minute), holdfast.WithMaxHold(time.Hour)} {
			l := e.RW(m, opt) // its readers share no hold
			inside := e.MustRLock(l)
			p.BlackHole(true)
			for _, lock := range []func(context.Context) (*holdfast.Lease, error){l.RLock, l.TryRLock} {
				ctx, cancel := context.WithTimeout(bg, 300*time.Millisecond)
				_, err := lock(ctx)
				cancel()
				e.WantErr(err, holdfast.ErrUnavailable)
				e.WantNotErr(err, holdfast.ErrNotAcquired)
			}
			p.Heal()
			e.Eventually("nobody else is inside", func() bool { return m.Stats().Locks == 1 && len(e.Holders()) <= 2 })
			e.MustUnlock(inside)
			e.Clean(m, Tombstones)
		}
	},

	// A hold that Extend has made longer stays with its readers: others would outlive their own lease by it.
	"ExtendedHoldIsNotJoined": func(e *Env) {
		m := e.Manager()
		first := e.MustRLock(e.RW(m))
		redistest.Must(e, first.Extend(bg, time.Hour))
		second := e.MustRLock(e.RW(m))
		if len(e.Holders()) != 2 {
			e.Errorf("holders %v", e.Holders())
		}
		e.MustUnlock(first)
		if ttl := e.PTTL(); ttl > lease {
			e.Errorf("a reader that asked for %v would keep the lock for %v", lease, ttl)
		}
		e.MustUnlock(second)
		e.Clean(m)
	},

	// S8 over goroutines and managers.
	"ManyReadersOrOneWriter": func(e *Env) {
		e.Server()
		var s RWSection
		var wg sync.WaitGroup
		const rounds = 100
		for _, opts := range [][]holdfast.Option{nil, nil, {holdfast.WithHandoffSlice(0)}} {
			l := e.RW(e.Manager(opts...))
			for range 2 {
				wg.Go(func() {
					for range rounds {
						got := e.MustLock(l)
						s.Write(e)
						e.MustUnlock(got)
					}
				})
			}
			for range 4 {
				wg.Go(func() {
					for range rounds {
						got := e.MustRLock(l)
						s.Read(e, nil)
						e.MustUnlock(got)
					}
				})
			}
		}
		wg.Wait()
		redistest.Want(e, s.n, 6*rounds, "%d writes, want %d")
		e.srv.RequireNoKeys(e, Tombstones)
	},

	// The second to n-th reader of a process costs no command, nor does leaving before
	// the last.
	"ReadersOfAProcessShareOneHold": func(e *Env) {
		m, p := e.Via()
		l := e.RW(m)
		e.MustUnlock(e.MustRLock(l))
		// Once per slice a process asks whether a writer waits elsewhere; that is not counted.
		ofTheLock := func(cmd []string) bool { return script(cmd) && len(cmd) > 3 && cmd[3] == e.Key }
		p.Record()
		leases := []*holdfast.Lease{e.MustRLock(l)}
		redistest.Want(e, p.Count(ofTheLock), 1, "%d commands for the first reader")
		p.Record()
		for range 100 {
			leases = append(leases, e.MustRLock(l))
		}
		if got := e.Holders(); len(got) != 1 || len(e.Rights()) != 1 {
			e.Errorf("holders %v, rights %v", got, e.Rights())
		}
		e.MustUnlock(leases[1:]...)
		if n := p.Count(ofTheLock); n != 0 {
			e.Errorf("%d commands for the others: %q", n, p.Commands())
		}
		redistest.Want(e, leases[0].Valid(), true, "the first reader is out")
		e.MustUnlock(leases[0])
		redistest.Want(e, p.Count(ofTheLock), 1, "%d commands for the last reader's leaving")
		e.Clean(m, Tombstones)
	},

	// A reader with an end of its own has a hold of its own, and ends alone.
	"ReadersWithAnEndOfTheirOwn": func(e *Env) {
		m := e.Manager()
		shared := e.MustRLock(e.RW(m))
		fixed := e.MustRLock(e.RW(m, holdfast.WithFixedLease(lease)))
		limited := e.MustRLock(e.RW(m, holdfast.WithMaxHold(lease)))
		longer := e.MustRLock(e.RW(m, holdfast.WithLease(time.Hour)))
		if got := e.Holders(); len(got) != 4 {
			e.Errorf("%d holds, want 4: %v", len(got), got)
		}
		e.WantLost(fixed, holdfast.LostDeadline)
		<-limited.Done()
		e.WantErr(limited.Err(), holdfast.ErrMaxHold)
		if !shared.Valid() || !longer.Valid() {
			e.Error("the others ended as well")
		}
		e.MustUnlock(shared, longer)
		e.WantErr(fixed.Unlock(bg), holdfast.ErrLeaseLost)
		e.WantErr(limited.Unlock(bg), holdfast.ErrMaxHold)
		e.Clean(m)
	},

	// AC-70: what was left is not renewed.
	"NothingStaysBehindReaders": func(e *Env) {
		m, p := e.Via()
		l := e.RW(m)
		var leases []*holdfast.Lease
		first := e.MustRLock(l)
		for range 4 {
			again := Got(e, l.RLock, first.Context(bg))
			leases = append(leases, again)
		}
		for _, r := range append(leases, first) {
			e.MustUnlock(r)
		}
		e.Clean(m)
		p.Record()
		time.Sleep(lease*2/3 + lease/10) // two periods in which nothing may happen
		if n := p.Count(isCommand); n != 0 {
			e.Errorf("%d commands after the last reader left: %q", n, p.Commands())
		}
	},

	// TryRLock's refusal is true, and prompt: a writer holds the lock or waits for it.
	"TryRLock": func(e *Env) {
		a, b := e.Manager(), e.Manager()
		ra, rb := e.RW(a), e.RW(b)
		writer := e.MustLock(ra)
		e.Busy(ra.TryRLock)
		e.Busy(rb.TryRLock)
		e.MustUnlock(writer)

		reader, err := e.TryLock(ra.RLocker())
		redistest.Must(e, err)
		other, err := e.TryLock(rb.RLocker())
		redistest.Must(e, err)
		e.Busy(ra.TryLock)
		e.Busy(rb.TryLock)
		waiting := e.InQueue(1, rb)
		e.Busy(rb.TryRLock) // the writer waits here
		e.Eventually("the other process knows of the writer", func() bool {
			got, err := ra.TryRLock(bg)
			if err == nil {
				e.MustUnlock(got)
			}
			return err != nil
		})
		e.Busy(e.RW(e.Manager()).TryRLock)
		e.MustUnlock(reader)
		e.Passes(other, "the writer", waiting)
		e.Clean(a)
		e.Clean(b)
	},

	"RLockerAndRLockAsync": func(e *Env) {
		m := e.Manager()
		l := e.RW(m)
		side := l.RLocker()
		one := e.MustLock(side)
		two := Got(e, side.TryLock, bg)
		three := <-l.RLockAsync(bg)
		if three.Err != nil {
			e.Fatal(three.Err)
		}
		write := l.LockAsync(bg)
		e.Parked(m, 1)
		ctx, cancel := context.WithCancel(bg)
		behind := l.RLockAsync(ctx)
		e.Parked(m, 2)
		cancel()
		e.WantErr((<-behind).Err, holdfast.ErrNotAcquired, context.Canceled)
		last := l.RLockAsync(bg)
		e.MustUnlock(one, two, three.Lease)
		e.MustUnlock(Granted(e, write))
		r := <-last
		if r.Err != nil {
			e.Fatal(r.Err)
		}
		redistest.Check(e, holdfast.Do(bg, side, func(context.Context, *holdfast.Lease) error { return nil }))
		e.MustUnlock(r.Lease)
		e.Clean(m)
	},
}
