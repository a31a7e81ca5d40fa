package holdfast_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Members are lost one after the other, and each could be taken again before the next ends:
// the lease ends nevertheless when a holder may not have it any longer.
func TestRedlock_EndsWhatHasAnEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]holdfast.Option{
		"WithMaxHold": holdfast.WithMaxHold(3 * time.Second), "WithFixedLease": holdfast.WithFixedLease(3 * time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := servers(t, 3)
			c := all.candidate(t, holdfast.WithLease(3*time.Second), end)
			lease := mustLock(t, c)
			all.heldBy(t, 3)
			for _, m := range c.managers[:2] {
				time.Sleep(time.Second) // of the lease
				if _, err := m.ForceUnlock(t.Context(), vote); err != nil {
					t.Fatal(err)
				}
			}
			select {
			case <-lease.Done():
			case <-time.After(patience):
				t.Errorf("valid until %v from now", time.Until(lease.Deadline()))
			}
			_ = lease.Unlock(t.Context())
		})
	}
}

func TestRedlock_LossOfTheMajorityEndsIt(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := servers(t, 3)
		c := all.candidate(t, holdfast.WithLease(4*time.Second))
		lease := mustLock(t, c)
		all.joined(t, lease)
		ctx := lease.Context(t.Context())
		c.managers[0].Close(t.Context())
		if !lease.Valid() {
			t.Fatalf("a closed minority ended it: %v", lease.Err())
		}
		all[1].Admin().Set(t.Context(), vote, "something else", 0)
		select {
		case <-ctx.Done():
		case <-time.After(patience):
			t.Fatal("nobody was told")
		}
		wantErr(t, context.Cause(ctx), holdfast.ErrLeaseLost, holdfast.ErrClosed)
		redistest.Eventually(t, patience, "the rest is released", func() bool { return len(all[2].Keys()) == 0 })
		wantErr(t, lease.Unlock(t.Context()), holdfast.ErrLeaseLost, nil)
		wantErr(t, lease.Extend(t.Context(), time.Minute), holdfast.ErrLeaseLost, nil)
	})
}

func TestRedlock_Close(t *testing.T) {
	t.Parallel()
	all := servers(t, 3)
	c, other := all.candidate(t), all.candidate(t)
	lease := mustLock(t, c)
	waiting := make(chan error, 1)
	go func() { _, err := other.Lock(t.Context()); waiting <- err }()
	other.waitsAt(t)
	for i := range all {
		if err := other.managers[i].Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := c.managers[i].Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	wantErr(t, <-waiting, holdfast.ErrClosed, holdfast.ErrUnavailable)
	<-lease.Done()
	wantErr(t, lease.Err(), holdfast.ErrClosed, nil)
	wantErr(t, lease.Unlock(t.Context()), holdfast.ErrClosed, nil)
	_, err := c.TryLock(t.Context())
	wantErr(t, err, holdfast.ErrClosed, nil)
	all.heldBy(t, 0)
}

// Unlock does not wait for a dead minority: it could only say that it is unavailable.
func TestRedlock_UnlockWithoutAMinority(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := servers(t, 3)
		c := all.candidate(t)
		lease := mustLock(t, c)
		all.heldBy(t, 3)
		all.joined(t, lease)
		all[1].Pause()
		if err := lease.Extend(t.Context(), time.Minute); err != nil {
			t.Errorf("Extend: %v", err)
		}
		if err := lease.Unlock(t.Context()); err != nil {
			t.Errorf("Unlock: %v", err)
		}
		all[1].Resume()
		all.heldBy(t, 0)
	})
}

// A lease of an Unlock that could not be confirmed can be unlocked again.
func TestRedlock_UnlockAgain(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := servers(t, 3)
		c := all.candidate(t)
		lease := mustLock(t, c)
		all.heldBy(t, 3)
		all[0].Pause()
		all[1].Pause()
		wantErr(t, lease.Unlock(t.Context()), holdfast.ErrUnavailable, holdfast.ErrNotHeld)
		all[0].Resume()
		all[1].Resume()
		redistest.Eventually(t, patience, "it is confirmed", func() bool { return lease.Unlock(t.Context()) == nil })
		wantErr(t, lease.Unlock(t.Context()), holdfast.ErrNotHeld, nil)
		all.heldBy(t, 0)
	})
}

// A member that is lost before a majority has granted the lock is taken again like one that is lost later.
func TestRedlock_LostBeforeTheMajorityIsTakenAgain(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := servers(t, 3)
		c, proxies := all.candidateVia(t)
		replies := []*redistest.Gate{proxies[1].HoldReply(scriptOn(vote)), proxies[2].HoldReply(scriptOn(vote))}
		got := waits(t, c)
		for _, gate := range replies {
			gate.Wait(t)
		}
		redistest.Eventually(t, patience, "the first is held", func() bool { return c.managers[0].Stats().Held == 1 })
		if freed, err := c.managers[0].ForceUnlock(t.Context(), vote); !freed || err != nil {
			t.Fatalf("ForceUnlock: %v, %v", freed, err)
		}
		redistest.Eventually(t, patience, "it is lost", func() bool { return c.managers[0].Stats().Held == 0 })
		for _, gate := range replies {
			gate.Release()
		}
		lease := got()
		all.heldBy(t, 3)
		mustUnlock(t, lease)
	})
}

// A majority that denies the lock ends Lock, as a single server that does.
func TestRedlock_DeniedEndsLock(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := servers(t, 3)
		var clients []*redis.Client
		for _, srv := range all {
			clients = append(clients, srv.ClientWith(t, func(o *redis.Options) { o.Password = "wrong" }))
		}
		failed := make(chan error, 1)
		go func() {
			_, err := candidateOn(t, clients, mutexes).Lock(t.Context())
			failed <- err
		}()
		wantErr(t, soonest(t, failed), holdfast.ErrUnavailable, nil)
	})
}
