package locktest

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// grantRaceScenarios are about grants that are late, lost, or meet a caller who leaves.
var grantRaceScenarios = map[string]func(*Env){
	// The message comes late, but in time: it is not trusted, and asking makes a grant of
	// it.
	"LateGrantIsConfirmed": func(e *Env) {
		m, p := e.Via(holdfast.WithPollInterval(time.Hour), holdfast.WithFairPatience(time.Hour), holdfast.WithLease(20*time.Second))
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
		redistest.WantMost(e, e.PTTL(), claim, "the claim lasts for %v")
		gate.Release()
		l := <-got
		redistest.Want(e, p.Count(acquireOf(e.Key)), 1, "asked %d times")
		if left := time.Until(l.Deadline()); left < 10*time.Second {
			e.Errorf("the lease ends in %v, %v after the grant", left, time.Since(granted))
		}
		e.MustUnlock(l)
	},

	// The message comes when another owner has the lock: it grants nothing.
	"GrantAfterTheClaimIsNone": func(e *Env) {
		m, p := e.Via(holdfast.WithPollInterval(time.Hour), holdfast.WithFairPatience(time.Hour), holdfast.WithLease(20*time.Second))
		held := e.MustLock(e.Lock(e.Manager(holdfast.WithLease(20 * time.Second))))
		got := e.bystander(m)
		gate := e.Deafen(m, p)
		other := e.bystander(e.Manager())
		var s Section
		start := time.Now()
		e.MustUnlock(held)
		l := <-other
		d := time.Since(start)
		e.Worst("L5:behind-one-that-is-cut-off", d)
		if d < claim-100*time.Millisecond || d > e.bound(3*claim) {
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
		held := e.MustLock(e.Lock(e.Manager(holdfast.WithLease(time.Hour))))
		got := e.bystander(m)
		gate := e.Deafen(m, p)
		start := time.Now()
		e.Passes(held, "the waiter", got)
		redistest.WantMost(e, time.Since(start), e.bound(lostClaim), "found after %v")
		gate.Release()
	},

	// H2 and H6 for grants: 200 times at any moment of a hand-off the waiter changes
	// its mind. No process keeps the lock for a claim.
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
			if err := <-result; err != nil && !errors.Is(err, context.Canceled) && !e.excused(err) {
				e.Errorf("%v", err)
			}
			start := time.Now()
			e.MustUnlock(e.MustLock(a))
			redistest.WantMost(e, time.Since(start), e.bound(lostClaim), "taken for %v by nobody")
			cancel()
		}
		e.Logf("%d of 200 were granted", granted)
		e.Clean(m, Tombstones)
	},

	// A waiter that was told of Redisson's turn gives way for a moment, in which its manager is
	// closed: nothing is left of it.
	"CloseWhileGivingWay": func(e *Env) {
		held := e.MustLock(e.Lock(e.Manager(byMessage...)))
		for range 50 {
			m := e.Manager(byMessage...)
			result := e.kind.Async(e.Lock(m), bg)
			e.Listening(1)
			if n := e.tellTurn(); n != 1 {
				e.Fatalf("%d processes were told", n)
			}
			time.Sleep(rand.N(3 * time.Millisecond)) // the phase
			if err := m.Close(bg); err != nil && !e.excused(err) {
				e.Errorf("Close: %v", err)
			}
			e.WantErr((<-result).Err, holdfast.ErrClosed)
			e.within(e.bound(prompt), "nothing of the waiter", func() bool {
				return e.srv.Admin().Exists(bg, e.queueKeys()...).Val() == 0 && e.inboxes() == 0
			})
		}
		e.MustUnlock(held)
		e.within(e.bound(prompt), "no keys", func() bool { return onlyTombstones(e) })
	},

	// A waiter asks, and before Redis reads that it is granted the lock and an operator frees it by
	// hand: the refusal, by the next owner, is newer than the message of the grant.
	"RefusalNewerThanAGrant": func(e *Env) {
		held := e.MustLock(e.Lock(e.Manager(byMessage...)))
		m, p := e.Via(byMessage...)
		got := e.bystander(m)
		p.Record()
		gate := p.HoldRequest(acquireOf(e.Key))
		e.tellTurn() // whereupon it asks
		gate.Wait(e)
		heard := m.Stats().Wakeups
		e.MustUnlock(held)
		e.Eventually("it hears of the grant", func() bool { return m.Stats().Wakeups > heard })
		other := e.Manager(byMessage...)
		if ok, err := e.ForceUnlock(other); !ok || err != nil {
			e.Fatalf("%v, %v", ok, err)
		}
		next := e.MustLock(e.Lock(other))
		start := e.srv.Admin().Time(bg).Val()
		e.Eventually("Redis counts in milliseconds", func() bool { return e.srv.Admin().Time(bg).Val().Sub(start) > 2*time.Millisecond })
		gate.Release()
		e.Queued(1)
		e.quiet()
		select {
		case <-got:
			e.Fatal("two holders")
		default:
		}
		if n := p.Count(acquireOf(e.Key)); n != 1 && !e.troubled() {
			e.Errorf("asked %d times, where the refusal says it all", n)
		}
		e.Passes(next, "the waiter", got)
	},

	// Where the machine stands still for long, Close and the Unlock beside it end before Redis has confirmed what they
	// give back, and say so.
	"GrantMeetsClose": func(e *Env) {
		a := e.Lock(e.Manager())
		const rounds = 30
		confirmed := 0
		for range rounds {
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
			err := <-result
			if err != nil && !errors.Is(err, holdfast.ErrClosed) && !errors.Is(err, holdfast.ErrUnavailable) {
				e.Errorf("%v", err)
			}
			closing := <-closed
			if closing != nil && !errors.Is(closing, holdfast.ErrUnavailable) {
				e.Errorf("Close: %v", closing)
			}
			start := time.Now()
			e.MustUnlock(e.MustLock(a)) // nothing is left
			if closing != nil || errors.Is(err, holdfast.ErrUnavailable) {
				continue
			}
			confirmed++
			redistest.WantMost(e, time.Since(start), e.bound(lostClaim), "taken for %v by nobody")
		}
		if confirmed == 0 || e.kind.Virtual && confirmed < rounds/2 {
			e.Errorf("%d of %d rounds were confirmed", confirmed, rounds)
		}
		e.within(e.bound(prompt), "no keys", func() bool { return onlyTombstones(e) })
	},
}

// tellTurn says to the first in the queue what a release says that leaves the lock open for
// Redisson, and returns how many processes heard it.
func (e *Env) tellTurn() int64 {
	e.Helper()
	id := e.srv.Admin().LIndex(bg, e.queue(), 0).Val()
	manager, number, ok := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(id, "hf-"), ":write"), ":")
	if !ok {
		e.Fatalf("the first in the queue is %q", id)
	}
	return e.srv.Admin().Publish(bg, "holdfast_inbox:"+manager, "o "+number).Val()
}
