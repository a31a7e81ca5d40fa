package several

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// AC-79: a member of three is dead, comes back empty, and another one restarts empty: no other caller gets a majority, and
// each member is taken again.
func TestRedlock_RestartedEmptyMemberIsTakenAgain(t *testing.T) {
	ofEveryKind(t, func(t *testing.T, of, rival Side) {
		all := Servers(t, 3)
		c, other := all.CandidateFor(t, of, holdfast.WithLease(9*time.Second)), all.CandidateFor(t, rival) // a machine may stand still for some seconds
		refused := func() {
			t.Helper()
			_, err := other.TryLock(t.Context())
			locktest.WantErr(t, err, holdfast.ErrNotAcquired, nil)
			other.idle(t) // the votes that it was granted are released
		}
		all[0].Kill()
		lease := locktest.MustLock(t, c)
		refused()
		if err := lease.Extend(t.Context(), time.Minute); err != nil {
			t.Errorf("Extend: %v", err)
		}
		all[0].Restart()
		all.heldBy(t, 3)
		refused()
		all[1].Restart() // the majority now rests on the member that was taken again
		refused()
		all.heldBy(t, 3)
		if !lease.Valid() {
			t.Errorf("the lease ended: %v", lease.Err())
		}
		got := locktest.Waits(t, other)
		other.waitsAt(t)
		locktest.MustUnlock(t, lease)
		locktest.MustUnlock(t, got())
		all.clean(t)
	})
}

// A member that is lost before a majority has granted the lock is taken again like one that is lost later.
func TestRedlock_LostBeforeTheMajorityIsTakenAgain(t *testing.T) {
	redistest.InFakeTime(t, func(t *testing.T) {
		all := Servers(t, 3)
		c, proxies := all.candidateVia(t, Mutexes)
		replies := []*redistest.Gate{proxies[1].HoldReply(locktest.ScriptOn(Vote)), proxies[2].HoldReply(locktest.ScriptOn(Vote))}
		got := locktest.Waits(t, c)
		for _, gate := range replies {
			gate.Wait(t)
		}
		redistest.Eventually(t, locktest.Patience, "the first is held", func() bool { return c.Managers[0].Stats().Held == 1 })
		if freed, err := c.Managers[0].ForceUnlock(t.Context(), Vote); !freed || err != nil {
			t.Fatalf("ForceUnlock: %v, %v", freed, err)
		}
		redistest.Eventually(t, locktest.Patience, "it is lost", func() bool { return c.Managers[0].Stats().Held == 0 })
		for _, gate := range replies {
			gate.Release()
		}
		lease := got()
		all.heldBy(t, 3)
		locktest.MustUnlock(t, lease)
	})
}

// AC-80: time that the answers took is not part of the lease.
func TestRedlock_LateAnswers(t *testing.T) {
	redistest.InFakeTime(t, func(t *testing.T) {
		all := Servers(t, 5)
		const ttl = 2 * time.Second
		c, proxies := all.candidateVia(t, Mutexes, holdfast.WithFixedLease(ttl))
		for _, tc := range []struct {
			late    int
			by      time.Duration
			granted bool
		}{
			{2, 6 * ttl / 10, true},  // not waited for
			{3, ttl / 8, true},       // waited for
			{3, 6 * ttl / 10, false}, // more than a request may take
		} {
			for _, p := range proxies[:tc.late] {
				p.Delay(tc.by/2, 0)
			}
			before := time.Now()
			lease, err := c.TryLock(t.Context())
			switch {
			case tc.granted && err != nil, !tc.granted && !errors.Is(err, holdfast.ErrUnavailable):
				t.Errorf("%d late by %v: %v", tc.late, tc.by, err)
			case err == nil && lease.Deadline().After(time.Now().Add(ttl-tc.by*4/5)) && tc.late == 3:
				t.Errorf("%d late by %v: deadline %v after the call", tc.late, tc.by, lease.Deadline().Sub(before))
			}
			if err == nil {
				_ = lease.Unlock(t.Context())
			}
			for _, p := range proxies {
				p.Heal()
			}
			all.heldBy(t, 0)
		}
	})
}

// AC-81: Lock, Extend and Unlock return with the majority, while the proxy still withholds
// what one member has to say: the request that it has not answered, or its reply, has not
// been given up yet.
func TestRedlock_ReturnsWithTheMajority(t *testing.T) {
	t.Parallel()
	all := Servers(t, 3)
	c, proxies := all.candidateVia(t, Mutexes)
	script := func(cmd []string) bool {
		return len(cmd) > 3 && strings.HasPrefix(strings.ToLower(cmd[0]), "eval") && cmd[3] == Vote
	}
	const rounds = 4
	for name, tc := range map[string]struct {
		withhold func(*redistest.Proxy, redistest.Match) *redistest.Gate
		joined   bool // the member has joined before: its release is withheld
	}{
		"request":         {withhold: (*redistest.Proxy).HoldRequest},
		"reply":           {withhold: (*redistest.Proxy).HoldReply},
		"release":         {withhold: (*redistest.Proxy).HoldRequest, joined: true},
		"release's reply": {withhold: (*redistest.Proxy).HoldReply, joined: true},
	} {
		for member, p := range proxies {
			late := 0 // rounds that took so long that the request may have been given up
			for range rounds {
				start := time.Now()
				var gate *redistest.Gate
				if !tc.joined {
					gate = tc.withhold(p, script)
				}
				lease := locktest.MustLock(t, c)
				if tc.joined {
					all.Joined(t, lease)
					start, gate = time.Now(), tc.withhold(p, script)
				} else {
					gate.Wait(t) // the member may be asked only after Lock has returned, and is not if Unlock comes first
					locktest.MustExtend(t, lease, time.Minute)
				}
				locktest.MustUnlock(t, lease)
				gate.Wait(t) // and is not released yet
				if time.Since(start) > 900*time.Millisecond {
					late++
				}
				gate.Release()
				all.heldBy(t, 0)
				c.idle(t)
			}
			if late > rounds/2 { // a busy machine may be so slow now and then
				t.Errorf("%s of member %d withheld: waited for in %d of %d rounds", name, member, late, rounds)
			}
		}
	}
}

// AC-81: members that are dead or stopped are not waited for either.
func TestRedlock_DeadMinorityCostsNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		of   int
		down func(Electorate)
		up   func(Electorate)
	}{
		"one of three killed":  {3, func(all Electorate) { all[0].Kill() }, func(all Electorate) { all[0].Restart() }},
		"two of five stopped":  {5, func(all Electorate) { all[0].Pause(); all[3].Pause() }, func(all Electorate) { all[0].Resume(); all[3].Resume() }},
		"one of three stopped": {3, func(all Electorate) { all[1].Pause() }, func(all Electorate) { all[1].Resume() }},
	} {
		t.Run(name, redistest.Worlds(func(t *testing.T) {
			all := Servers(t, tc.of)
			c := all.Candidate(t)
			all.greet(t, c)
			tc.down(all)
			// Waiting for one would take a second each time, and Lock's context ends first.
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			for range 20 {
				lease := locktest.Got(t, c.Lock, ctx)
				redistest.Must(t, lease.Extend(ctx, time.Minute))
				locktest.MustUnlock(t, lease)
			}
			tc.up(all)
			redistest.Eventually(t, locktest.Patience, "no vote is left", func() bool { return all.held(t) == 0 })
		}))
	}
}

// AC-82: without a majority there is an error soon, and nothing is left behind.
func TestRedlock_DeadMajority(t *testing.T) {
	t.Parallel()
	all := Servers(t, 3)
	c := all.Candidate(t)
	all.greet(t, c)
	all[0].Kill()
	all[2].Pause()
	begun := time.Now()
	_, err := c.TryLock(t.Context())
	locktest.WantErr(t, err, holdfast.ErrUnavailable, holdfast.ErrNotAcquired)
	redistest.WantMost(t, time.Since(begun), 5*time.Second, "TryLock took %v")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = c.Lock(ctx)
	locktest.WantErr(t, err, holdfast.ErrUnavailable, holdfast.ErrNotAcquired)
	locktest.WantErr(t, err, context.DeadlineExceeded, context.Canceled)
	redistest.Eventually(t, locktest.Patience, "the dead one is known to be dead", func() bool {
		_, err = c.TryLock(t.Context())
		return errors.Is(err, holdfast.ErrUnavailable) && errors.Is(err, syscall.ECONNREFUSED)
	})
	wantLines(t, err, "member 1 of 3: dial tcp ", "member 3 of 3: no answer in ")
	got := locktest.Waits(t, c) // rides it out
	all[0].Restart()
	all[2].Resume()
	locktest.MustUnlock(t, got())
	all.heldBy(t, 0)
}

// A majority refuses to write. The error says so of a caller that leaves between two rounds, and of one that leaves in a
// round that has no answer yet: no caller has the lock.
func TestRedlock_LeavesADeadMajority(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := Servers(t, 3)
		p := all[0].Proxy(t)
		c := CandidateOn(t, []*redis.Client{p.Client(t), all[1].Client(t), all[2].Client(t)}, Mutexes)
		all.greet(t, c)
		for _, srv := range all[:2] {
			redistest.Must(t, srv.Admin().ConfigSet(t.Context(), "min-replicas-to-write", "1").Err())
		}
		locking := func(ctx context.Context) <-chan error {
			failed := redistest.Begin(func() error { _, err := c.Lock(ctx); return err })
			return failed
		}
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			locktest.WantErr(t, redistest.Next(t, locking(ctx), "it goes on"), holdfast.ErrUnavailable, holdfast.ErrNotAcquired)
			cancel()
		}
		var err error
		for try := 0; try < 5 && (err == nil || !strings.Contains(err.Error(), "NOREPLICAS")); try++ { // a machine that stands still makes a silence of it
			ctx, cancel := context.WithCancel(t.Context())
			before := c.Managers[0].Stats().Troubles
			failed := locking(ctx)
			redistest.Eventually(t, locktest.Patience, "some rounds", func() bool { return c.Managers[0].Stats().Troubles > before+1 })
			gate := p.HoldRequest(locktest.ScriptOn(Vote))
			gate.Wait(t)
			cancel()
			err = redistest.Next(t, failed, "it goes on")
			locktest.WantErr(t, err, holdfast.ErrUnavailable, holdfast.ErrNotAcquired)
			locktest.WantErr(t, err, context.Canceled, nil)
			gate.Release()
			all.heldBy(t, 0)
		}
		if !strings.Contains(err.Error(), "NOREPLICAS") {
			t.Errorf("%v does not say NOREPLICAS", err)
		}
	})
}
