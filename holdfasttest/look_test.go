package holdfasttest_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Held has the locks of all kinds, and not what else is in Redis.
func TestHeld_NamesLocksOnly(t *testing.T) {
	inBothWorlds(t, func(t *testing.T) {
		s := holdfasttest.NewServer(t)
		m := s.NewManager()
		client := s.Client()
		redistest.Must(t, client.Set(t.Context(), "text", "x", 0).Err())
		redistest.Must(t, client.HSet(t.Context(), "hash", "x", "y").Err())
		if got := s.Held(); len(got) != 0 {
			t.Errorf("%q", got)
		}
		var leases []*holdfast.Lease
		for _, l := range []holdfast.Locker{m.RWMutex("write"), m.FairMutex("fair"), m.Mutex("mutex", holdfast.WithFencing()), m.RWMutex("read").RLocker()} {
			leases = append(leases, s.Hold(l))
		}
		waiting := s.NewManager().FairMutex("fair").LockAsync(t.Context())
		s.AwaitWaiters("fair", 1)
		if got := s.Held(); !slices.Equal(got, []string{"fair", "mutex", "read", "write"}) {
			t.Errorf("%q", got)
		}
		for _, lease := range leases {
			redistest.Check(t, lease.Unlock(t.Context()))
		}
		if got := <-waiting; got.Err != nil || !slices.Equal(s.Held(), []string{"fair"}) {
			t.Errorf("%v, held are %q", got.Err, s.Held())
		}
	})
}

// AwaitHeld and AwaitWaiters return when other goroutines have done what is awaited, and not before.
func TestAwait_WaitsForOthers(t *testing.T) {
	inBothWorlds(t, func(t *testing.T) {
		s := holdfasttest.NewServer(t)
		m := s.NewManager()
		later := func(l holdfast.Locker) <-chan holdfast.Result {
			return locktest.Calls(func(ctx context.Context) (*holdfast.Lease, error) {
				time.Sleep(20 * time.Millisecond)
				return l.Lock(ctx)
			}, context.Background())
		}
		holder := later(m.Mutex("x"))
		s.AwaitHeld("x")
		if info, err := m.Inspect(t.Context(), "x"); err != nil || !info.Held {
			t.Fatalf("AwaitHeld returns, and Redis has %+v, %v", info, err)
		}
		waiter := later(s.NewManager().Mutex("x"))
		s.AwaitWaiters("x", 1)
		if info, err := m.Inspect(t.Context(), "x"); err != nil || info.Waiters != 1 {
			t.Fatalf("AwaitWaiters returns, and Redis has %+v, %v", info, err)
		}
		for _, got := range []<-chan holdfast.Result{holder, waiter} {
			redistest.Check(t, locktest.Granted(t, got).Unlock(t.Context()))
		}
	})
}

// What is awaited in vain fails the test, and says how things are.
func TestAwait_SaysHowThingsAre(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		redistest.WantFailure(t, `holdfasttest: after 10s, "job" is not held: held by 0, waited for by 0; held are ["jobs"]`, func(tb testing.TB) {
			s := holdfasttest.NewServer(tb)
			s.Hold(s.NewManager().Mutex("jobs"))
			s.AwaitHeld("job")
		})
		redistest.WantFailure(t, `holdfasttest: after 10s, "job" is not waited for by 2: held by 1, waited for by 0; held are ["job"]`, func(tb testing.TB) {
			s := holdfasttest.NewServer(tb)
			s.Hold(s.NewManager().Mutex("job"))
			s.AwaitWaiters("job", 2)
		})
		redistest.WantFailure(t, `holdfasttest: Hold: after 10s: holdfast: lock not acquired: "job"`, func(tb testing.TB) {
			s := holdfasttest.NewServer(tb)
			s.Hold(s.NewManager().Mutex("job"))
			s.Hold(s.NewManager().Mutex("job"))
		})
		redistest.WantFailure(t, `holdfasttest: "job" is not held: holdfast: redis unavailable`, func(tb testing.TB) {
			s := holdfasttest.NewServer(tb)
			s.Down()
			s.AwaitHeld("job")
		})
		redistest.WantFailure(t, "holdfast: invalid lock name", func(tb testing.TB) { holdfasttest.NewServer(tb).AwaitHeld("") })
	})
}
