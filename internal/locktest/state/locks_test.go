package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/locktest/several"
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
		locktest.MustUnlock(t, b, cd, wanted)
	})
}

// A token that cannot be is an error.
func TestLease_FencingToken(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		m, all := locktest.ManagerOn(t, redistest.Start(t)), several.Servers(t, 3)
		fenced := locktest.MustLock(t, m.Mutex("fenced", holdfast.WithFencing()))
		if token, err := fenced.FencingToken(); err != nil || token == 0 || token != fenced.Token() {
			t.Errorf("token %d, %v; Token says %d", token, err, fenced.Token())
		}
		locktest.MustUnlock(t, fenced)
		for why, l := range map[string]holdfast.Locker{
			`lock "plain" was taken without WithFencing`: m.Mutex("plain"),
			`lock "a+b" is several locks`:                several.Multi(t, m.Mutex("a", holdfast.WithFencing()), m.Mutex("b", holdfast.WithFencing())),
			`lock "vote" is several locks`:               all.Candidate(t, holdfast.WithFencing()),
		} {
			lease := locktest.MustLock(t, l)
			token, err := lease.FencingToken()
			if token != 0 || !errors.Is(err, holdfast.ErrInvalidOption) || !strings.Contains(err.Error(), why) {
				t.Errorf("token %d, %v; want %q", token, err, why)
			}
			locktest.MustUnlock(t, lease)
		}
	})
}

// What ends a lease names the lock, wherever it is read, and Do says it once.
func TestLease_EndsNameTheLock(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv)
		const want = `holdfast: maximum hold time reached: "stuck"`
		stuck := m.Mutex("stuck", holdfast.WithLease(200*time.Millisecond), holdfast.WithMaxHold(200*time.Millisecond))
		for what, work := range map[string]func(context.Context) error{
			"the cause":  context.Cause,
			"nil":        func(context.Context) error { return nil },
			"around it":  func(ctx context.Context) error { return fmt.Errorf("work: %w", context.Cause(ctx)) },
			"of its own": func(context.Context) error { return errors.New("disk full") },
		} {
			err := holdfast.Do(t.Context(), stuck, func(ctx context.Context, lease *holdfast.Lease) error {
				<-ctx.Done()
				if err := lease.Err(); !errors.Is(err, holdfast.ErrMaxHold) || err.Error() != want {
					t.Errorf("Err: %v", err)
				}
				return work(ctx)
			})
			if !errors.Is(err, holdfast.ErrMaxHold) || strings.Count(err.Error(), want) != 1 {
				t.Errorf("fn returns %s: %v", what, err)
			}
		}
		closed := locktest.MustLock(t, m.Mutex("closed"))
		under := closed.Context(t.Context())
		redistest.Must(t, m.Close(context.Background()))
		if err := context.Cause(under); !errors.Is(err, holdfast.ErrClosed) || err.Error() != `holdfast: manager closed: "closed"` {
			t.Errorf("after Close: %v", err)
		}
	})
}
