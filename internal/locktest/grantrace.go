package locktest

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// grantRaceScenarios are about grants that are late, lost, or meet a caller who leaves.
var grantRaceScenarios = map[string]func(*Env){
	// The message comes late, but in time: it is not trusted, and asking makes a grant of
	// it.
	"LateGrantIsConfirmed": func(e *Env) {
		m, p := e.Via(holdfast.WithPollInterval(time.Minute), holdfast.WithFairPatience(time.Minute), holdfast.WithLease(20*time.Second))
		held := e.MustLock(e.Lock(e.Manager(holdfast.WithLease(20 * time.Second))))
		got := e.bystander(m)
		gate := e.Deafen(m, p)
		e.MustUnlock(held)
		granted := time.Now()
		p.Record()
		select {
		case <-got:
			e.Fatal("granted without a message")
		case <-time.After(700 * time.Millisecond): // more than a quarter of the claim
		}
		if e.PTTL() > claim {
			e.Errorf("the claim lasts for %v", e.PTTL())
		}
		gate.Release()
		l := <-got
		if n := p.Count(acquireOf(e.Key)); n != 1 {
			e.Errorf("asked %d times", n)
		}
		if left := time.Until(l.Deadline()); left < 10*time.Second {
			e.Errorf("the lease ends in %v, %v after the grant", left, time.Since(granted))
		}
		e.MustUnlock(l)
	},

	// The message comes when somebody else has the lock: it grants nothing.
	"GrantAfterTheClaimIsNone": func(e *Env) {
		m, p := e.Via(holdfast.WithPollInterval(time.Minute), holdfast.WithFairPatience(time.Minute), holdfast.WithLease(20*time.Second))
		held := e.MustLock(e.Lock(e.Manager(holdfast.WithLease(20 * time.Second))))
		got := e.bystander(m)
		gate := e.Deafen(m, p)
		other := e.bystander(e.Manager())
		var s Section
		e.MustUnlock(held)
		start := time.Now()
		l := <-other
		d := time.Since(start)
		e.Worst("L5:behind-one-that-is-cut-off", d)
		if d < claim-100*time.Millisecond || d > 3*claim {
			e.Errorf("a grant that nobody heard of cost %v", d)
		}
		s.inside.Add(1)
		gate.Release()
		select {
		case <-got:
			e.Fatal("two holders")
		case <-time.After(300 * time.Millisecond):
		}
		s.inside.Add(-1)
		e.MustUnlock(l)
		late := <-got
		s.Enter(e, 0)
		e.MustUnlock(late)
	},

	// The message is lost: asking finds the grant.
	"LostGrantIsFoundByAsking": func(e *Env) {
		m, p := e.Via(holdfast.WithPollInterval(200 * time.Millisecond))
		for range 5 {
			held := e.MustLock(e.Lock(e.Manager(holdfast.WithLease(time.Minute))))
			p.SwallowReply(redistest.Command("subscribe"), 1) // from the confirmation on
			got := e.Locking(e.Lock(m))
			e.Parked(m, 1)
			e.Listening(1)
			start := time.Now()
			e.MustUnlock(held)
			e.MustUnlock(<-got)
			if d := time.Since(start); d > lostClaim {
				e.Errorf("found after %v", d)
			}
			p.Heal()
			p.Cut()
			e.Eventually("no inbox", func() bool { return e.inboxes() == 0 })
		}
	},

	// H2 and H6 for grants: 200 times at any moment of a hand-over the waiter changes
	// its mind. The lock is not kept by anybody for a claim.
	"GrantMeetsCancel": func(e *Env) {
		m, p := e.Via()
		a, b := e.Lock(e.Manager()), e.Lock(m)
		p.Delay(0, time.Millisecond)
		granted := 0
		for range 200 {
			held := e.MustLock(a)
			ctx, cancel := context.WithCancel(bg)
			result := make(chan error, 1)
			go func() {
				l, err := b.Lock(ctx)
				if err == nil {
					granted++
					err = l.Unlock(bg)
				}
				result <- err
			}()
			e.Parked(m, 1)
			time.AfterFunc(rand.N(4*time.Millisecond), cancel) // the phase
			time.Sleep(rand.N(3 * time.Millisecond))
			e.MustUnlock(held)
			if err := <-result; err != nil && !errors.Is(err, context.Canceled) {
				e.Errorf("%v", err)
			}
			start := time.Now()
			e.MustUnlock(e.MustLock(a))
			if d := time.Since(start); d > lostClaim {
				e.Errorf("taken for %v by nobody", d)
			}
			cancel()
		}
		e.Logf("%d of 200 were granted", granted)
		e.Clean(m, Tombstones)
	},

	"GrantMeetsClose": func(e *Env) {
		a := e.Lock(e.Manager())
		for range 30 {
			m, p := e.Via()
			p.Delay(0, time.Millisecond)
			held := e.MustLock(a)
			result := make(chan error, 1)
			go func() {
				l, err := e.Lock(m).Lock(bg)
				if err == nil {
					err = l.Unlock(bg)
				}
				result <- err
			}()
			e.Parked(m, 1)
			closed := make(chan error, 1)
			time.AfterFunc(rand.N(4*time.Millisecond), func() { closed <- m.Close(bg) })
			time.Sleep(rand.N(3 * time.Millisecond))
			e.MustUnlock(held)
			if err := <-result; err != nil && !errors.Is(err, holdfast.ErrClosed) {
				e.Errorf("%v", err)
			}
			if err := <-closed; err != nil {
				e.Errorf("Close: %v", err)
			}
			start := time.Now()
			e.MustUnlock(e.MustLock(a)) // nothing is left
			if d := time.Since(start); d > lostClaim {
				e.Errorf("taken for %v by nobody", d)
			}
		}
		e.within(prompt, "no keys", func() bool { return onlyTombstones(e) })
	},
}
