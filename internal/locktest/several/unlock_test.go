package several

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// group is several locks as one, and what of it is in Redis.
type group struct {
	holdfast.Locker
	servers Electorate
	free    func() bool // enough of them to be taken by another
}

func groups(t *testing.T) map[string]group {
	one, three := Servers(t, 1), Servers(t, 3)
	m := locktest.ManagerOn(t, one[0])
	return map[string]group{
		"multi": {Multi(t, m.Mutex("a"), m.FairMutex("b"), m.RWMutex("c")), one, func() bool {
			return one[0].Admin().Exists(context.Background(), "a", "b", "c").Val() == 0
		}},
		"redlock": {three.Candidate(t), three, func() bool { return three.held(t) < 2 }},
	}
}

// unlocks are the answers to some calls of Unlock at the same time.
func unlocks(lease *holdfast.Lease, look func(error)) {
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() { look(lease.Unlock(context.Background())) })
	}
	all.Wait()
}

// S5: of many calls of Unlock one releases the locks, and no other returns before.
func TestGroup_UnlockedByManySucceedsOnce(t *testing.T) {
	for name, g := range groups(t) {
		for range 20 {
			var successes atomic.Int32
			lease := locktest.MustLock(t, g)
			unlocks(lease, func(err error) {
				if errors.Is(err, holdfast.ErrUnavailable) {
					err = locktest.Unlock(lease)
				}
				if !g.free() {
					t.Errorf("%s: %v, and it is not free", name, err)
				}
				if err == nil {
					successes.Add(1)
				} else {
					locktest.WantErr(t, err, holdfast.ErrNotHeld, nil)
				}
			})
			if n := successes.Load(); n != 1 {
				t.Errorf("%s: %d released it", name, n)
			}
		}
	}
}

// No caller is told that the lease has been released while Redis does not answer; then one is.
func TestGroup_UnlockedByManyWithoutAnAnswer(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		for name, g := range groups(t) {
			lease := locktest.MustLock(t, g)
			silent := g.servers[:len(g.servers)/2+1]
			for _, srv := range silent {
				srv.Pause()
			}
			unlocks(lease, func(err error) { locktest.WantErr(t, err, holdfast.ErrUnavailable, holdfast.ErrNotHeld) })
			for _, srv := range silent {
				srv.Resume()
			}
			redistest.Eventually(t, locktest.Patience, name+": it is confirmed", func() bool {
				err := lease.Unlock(t.Context())
				if errors.Is(err, holdfast.ErrNotHeld) {
					t.Fatalf("%s: %v, and no Unlock has succeeded", name, err)
				}
				return err == nil
			})
			if !g.free() {
				t.Errorf("%s: it is confirmed, and not free", name)
			}
			locktest.WantErr(t, lease.Unlock(t.Context()), holdfast.ErrNotHeld, nil)
		}
	})
}

// A caller that unlocks a lease again which was lost unnoticed is told so again: no call released it.
func TestGroup_UnlockedAgainAfterALoss(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		for _, g := range groups(t) {
			lease := locktest.MustLock(t, g)
			for _, srv := range g.servers {
				srv.Admin().Del(t.Context(), "a", Vote)
			}
			for range 2 {
				locktest.WantErr(t, lease.Unlock(t.Context()), holdfast.ErrLeaseLost, holdfast.ErrNotHeld)
			}
		}
	})
}

// Unlock says which members did not confirm it, that of a lease taken by re-entry as well.
func TestRedlock_UnlockSaysWhichMember(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		for _, again := range []bool{false, true} {
			all := Servers(t, 3)
			c := all.Candidate(t)
			lease := locktest.MustLock(t, c)
			all.Joined(t, lease)
			if again {
				inner := locktest.Got(t, c.Lock, lease.Context(t.Context()))
				locktest.MustUnlock(t, lease)
				lease = inner
			}
			all[0].Pause()
			all[2].Pause()
			err := lease.Unlock(t.Context())
			locktest.WantErr(t, err, holdfast.ErrUnavailable, nil)
			wantLines(t, err, "member 1 of 3: no answer", "member 3 of 3: no answer")
		}
	})
}

// wantLines checks that err says each of some things once.
func wantLines(t *testing.T, err error, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if err == nil || strings.Count(err.Error(), line) != 1 {
			t.Errorf("%v does not say %q once", err, line)
		}
	}
}

// The votes of two members have been deleted, and the third one is silent: Unlock says both,
// and what is not confirmed must not hide what is lost.
func TestRedlock_LossBesideSilence(t *testing.T) {
	for name, section := range map[string]func(ctx context.Context, l holdfast.Locker, work func()) error{
		"Do": func(ctx context.Context, l holdfast.Locker, work func()) error {
			return holdfast.Do(ctx, l, func(context.Context, *holdfast.Lease) error { work(); return nil })
		},
		"SyncLocker": func(ctx context.Context, l holdfast.Locker, work func()) (err error) {
			defer func() { err, _ = recover().(error) }()
			s := holdfast.SyncLocker(ctx, l)
			s.Lock()
			work()
			s.Unlock()
			return nil
		},
	} {
		t.Run(name, redistest.Worlds(func(t *testing.T) {
			all := Servers(t, 3)
			err := section(t.Context(), all.Candidate(t), func() {
				all.heldBy(t, 3)
				for _, srv := range all[:2] {
					srv.Admin().Del(t.Context(), Vote)
				}
				all[2].Pause()
				t.Cleanup(all[2].Resume)
			})
			locktest.WantErr(t, err, holdfast.ErrLeaseLost, nil)
		}))
	}
}

// What a section returns is joined with the loss of its lease, once: also if it returns the loss itself, as code does that
// returns the cause of its context. A Multi and a Redlock are lost as a lock is.
func TestDo_SaysTheLossOnce(t *testing.T) {
	mine := errors.New("mine")
	for name, do := range map[string]func(context.Context, holdfast.Locker, func(context.Context, *holdfast.Lease) error) error{
		"Do": holdfast.Do,
		"UnlockInto": func(ctx context.Context, l holdfast.Locker, work func(context.Context, *holdfast.Lease) error) (err error) {
			lease, err := l.Lock(ctx)
			if err != nil {
				return err
			}
			defer lease.UnlockInto(ctx, &err)
			return work(lease.Context(ctx), lease)
		},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.InFakeTime(t, func(t *testing.T) {
				m, all := locktest.ManagerOn(t, redistest.Start(t)), Servers(t, 3)
				short := holdfast.WithFixedLease(300 * time.Millisecond)
				for _, l := range []holdfast.Locker{m.Mutex("a", short), Multi(t, m.Mutex("b", short), m.Mutex("c")), all.Candidate(t, short)} {
					for _, returns := range []func(context.Context) error{
						func(ctx context.Context) error { return context.Cause(ctx) },
						func(ctx context.Context) error { return fmt.Errorf("step 2: %w", context.Cause(ctx)) },
						func(context.Context) error { return mine },
						func(context.Context) error { return nil },
					} {
						var want error
						err := do(t.Context(), l, func(ctx context.Context, lease *holdfast.Lease) error {
							<-ctx.Done()
							want = returns(ctx)
							return want
						})
						if want != nil && !errors.Is(err, want) {
							t.Errorf("%v is without %v", err, want)
						}
						locktest.WantErr(t, err, holdfast.ErrLeaseLost, nil)
						if n := strings.Count(err.Error(), holdfast.ErrLeaseLost.Error()); n != 1 {
							t.Errorf("the loss is there %d times: %v", n, err)
						}
					}
				}
				held := m.Mutex("d")
				if err := do(t.Context(), held, func(ctx context.Context, lease *holdfast.Lease) error { return lease.Unlock(ctx) }); err != nil {
					t.Errorf("unlocked by itself: %v", err)
				}
				redistest.Want(t, do(t.Context(), held, func(context.Context, *holdfast.Lease) error { return mine }), mine, "%v is not the error as it was returned")
				locktest.MustUnlock(t, locktest.MustLock(t, held))
			})
		})
	}
}
