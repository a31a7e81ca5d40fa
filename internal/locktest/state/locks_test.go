package state

import (
	"context"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Two callers that wait for each other's locks show what they hold: by their contexts, through other contexts, and no more than
// is held still.
func TestLocks_SayWhatTheFirstWaiterHolds(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, other := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv)
		wanted := locktest.MustLock(t, other.Mutex("wanted"))
		holds := func(what string, ctx context.Context, want ...string) {
			t.Helper()
			ctx, cancel := context.WithCancel(ctx)
			result := m.Mutex("wanted").LockAsync(holdfast.WithLabel(ctx, what))
			var waiting holdfast.LocalLock
			redistest.Eventually(t, locktest.Patience, what+": waits", func() bool {
				for l := range m.Locks() {
					if l.Name == "wanted" {
						waiting = l
					}
				}
				return waiting.Waiters == 1
			})
			if !slices.Equal(waiting.WaiterHolds, want) {
				t.Errorf("%s: holds %q, want %q", what, waiting.WaiterHolds, want)
			}
			cancel()
			<-result
		}
		a, b := locktest.MustLock(t, m.Mutex("a")), locktest.MustLock(t, other.RWMutex("b").RLocker())
		both, err := holdfast.NewMulti(m.Mutex("c"), m.Mutex("d"))
		redistest.Must(t, err)
		cd := locktest.MustLock(t, both)
		ctx := b.Context(holdfast.WithLabel(a.Context(t.Context()), "inner"))
		holds("nothing", t.Context())
		holds("one", a.Context(t.Context()), "a")
		holds("two, of two managers", ctx, "b", "a")
		holds("the same twice", a.Context(ctx), "a", "b")
		holds("several", cd.Context(t.Context()), "c", "d")
		holds("hidden", holdfast.WithoutOwner(ctx))
		holds("taken behind that", a.Context(holdfast.WithoutOwner(ctx)), "a")
		locktest.MustUnlock(t, a)
		holds("not held any more", context.WithoutCancel(ctx), "b")
		locktest.MustUnlock(t, b)
		locktest.MustUnlock(t, cd)
		locktest.MustUnlock(t, wanted)
	})
}
