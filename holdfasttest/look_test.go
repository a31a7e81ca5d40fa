package holdfasttest_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Held has the locks of all kinds, and not what else is in Redis.
func TestHeld_NamesLocksOnly(t *testing.T) {
	inBothWorlds(t, func(t *testing.T) {
		s := holdfasttest.NewServer(t)
		m := s.NewManager()
		client := s.Client()
		if err := client.Set(t.Context(), "text", "x", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if err := client.HSet(t.Context(), "hash", "x", "y").Err(); err != nil {
			t.Fatal(err)
		}
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
			if err := lease.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if got := <-waiting; got.Err != nil || !slices.Equal(s.Held(), []string{"fair"}) {
			t.Errorf("%v, held are %q", got.Err, s.Held())
		}
	})
}

// AwaitHeld and AwaitWaiters return when other goroutines have done what is awaited, and not before.
func TestAwait_WaitsForOthers(t *testing.T) {
	inBothWorlds(t, func(t *testing.T) {
		var wg sync.WaitGroup
		t.Cleanup(wg.Wait) // runs after the server's: its callers have ended by then
		s := holdfasttest.NewServer(t)
		m := s.NewManager()
		later := func(l holdfast.Locker) <-chan holdfast.Result {
			got := make(chan holdfast.Result, 1)
			wg.Go(func() {
				time.Sleep(20 * time.Millisecond)
				lease, err := l.Lock(context.Background())
				got <- holdfast.Result{Lease: lease, Err: err}
			})
			return got
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
			r := <-got
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			if err := r.Lease.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
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
