package several

import (
	"testing"

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
