package holdfast_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// group is several locks as one, and what of it is in Redis.
type group struct {
	holdfast.Locker
	servers electorate
	free    func() bool // enough of them to be taken by another
}

func groups(t *testing.T) map[string]group {
	one, three := servers(t, 1), servers(t, 3)
	m := managerOn(t, one[0])
	return map[string]group{
		"multi": {multi(t, m.Mutex("a"), m.FairMutex("b"), m.RWMutex("c")), one, func() bool {
			return one[0].Admin().Exists(context.Background(), "a", "b", "c").Val() == 0
		}},
		"redlock": {three.candidate(t), three, func() bool { return three.held(t) < 2 }},
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
			lease := mustLock(t, g)
			unlocks(lease, func(err error) {
				if errors.Is(err, holdfast.ErrUnavailable) {
					err = unlock(lease)
				}
				if !g.free() {
					t.Errorf("%s: %v, and it is not free", name, err)
				}
				if err == nil {
					successes.Add(1)
				} else {
					wantErr(t, err, holdfast.ErrNotHeld, nil)
				}
			})
			if n := successes.Load(); n != 1 {
				t.Errorf("%s: %d released it", name, n)
			}
		}
	}
}

// Nobody is told that it has been released while Redis does not answer; then one is.
func TestGroup_UnlockedByManyWithoutAnAnswer(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		for name, g := range groups(t) {
			lease := mustLock(t, g)
			for _, srv := range g.servers {
				srv.Pause()
			}
			unlocks(lease, func(err error) { wantErr(t, err, holdfast.ErrUnavailable, holdfast.ErrNotHeld) })
			for _, srv := range g.servers {
				srv.Resume()
			}
			redistest.Eventually(t, patience, name+": it is confirmed", func() bool {
				err := lease.Unlock(t.Context())
				if errors.Is(err, holdfast.ErrNotHeld) {
					t.Fatalf("%s: %v, and no Unlock has succeeded", name, err)
				}
				return err == nil
			})
			wantErr(t, lease.Unlock(t.Context()), holdfast.ErrNotHeld, nil)
		}
	})
}

// Whoever unlocks a lease again that was lost unnoticed is told so again: nobody released it.
func TestGroup_UnlockedAgainAfterALoss(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		for _, g := range groups(t) {
			lease := mustLock(t, g)
			for _, srv := range g.servers {
				srv.Admin().Del(t.Context(), "a", vote)
			}
			for range 2 {
				wantErr(t, lease.Unlock(t.Context()), holdfast.ErrLeaseLost, holdfast.ErrNotHeld)
			}
		}
	})
}
