package several

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// AC-74: Multis that share names, in opposite orders and in tight loops, exclude each other and all get on.
func TestMulti_NoLivelock(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		var all []holdfast.Locker
		for range 4 {
			m := locktest.ManagerOn(t, srv)
			all = append(all, Multi(t, m.Mutex("x"), m.FairMutex("y"), m.RWMutex("z")), Multi(t, m.RWMutex("z"), m.FairMutex("y"), m.Mutex("w"), m.Mutex("x")))
		}
		locktest.Alone(t, 60, all...)
		srv.RequireTTLs(t)
	})
}

// Clients in tight loops exclude each other, and all get on.
func TestRedlock_OfEveryKindExcludes(t *testing.T) {
	for _, name := range []string{"mutex", "fair", "write"} {
		t.Run(name, redistest.Worlds(func(t *testing.T) {
			all := Servers(t, 3)
			var clients []holdfast.Locker
			for range 8 {
				clients = append(clients, all.CandidateFor(t, sides[name]))
			}
			locktest.Alone(t, 15, clients...)
			all.clean(t)
		}))
	}
}

// Exclusion while members are killed, restarted with their data, and stopped, one at a
// time.
func TestRedlock_ExcludesThroughFaults(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := Servers(t, 3, redistest.WithAOF())
		counter, granted := 0, 0 // unprotected
		var excused atomic.Int32
		var wg sync.WaitGroup
		done := make(chan struct{})
		for range 4 {
			c := all.Candidate(t, holdfast.WithLease(3*time.Second))
			wg.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					lease := locktest.MustLock(t, c)
					if !lease.Valid() {
						excused.Add(1)
						_ = lease.Unlock(t.Context())
						continue
					}
					n := counter
					for range 20 {
						if k := rand.N(100); k < 0 {
							n += k
						}
					}
					granted++
					counter = n + 1
					if err := lease.Unlock(t.Context()); err != nil && !errors.Is(err, holdfast.ErrUnavailable) && !errors.Is(err, holdfast.ErrLeaseLost) {
						t.Errorf("Unlock: %v", err)
					}
				}
			})
		}
		faults := 0
		for end := time.Now().Add(4 * time.Second); time.Now().Before(end); faults++ {
			srv := all[faults%3]
			if faults%2 == 0 {
				srv.Kill()
				<-time.After(rand.N(200 * time.Millisecond)) // how long it is away
				srv.Restart()
			} else {
				srv.Pause()
				<-time.After(rand.N(300 * time.Millisecond))
				srv.Resume()
			}
		}
		close(done)
		wg.Wait()
		t.Logf("%d sections, %d faults, %d leases over when granted", counter, faults, excused.Load())
		if counter != granted || counter == 0 {
			t.Errorf("counted %d of %d", counter, granted)
		}
		all.heldBy(t, 0)
	})
}
