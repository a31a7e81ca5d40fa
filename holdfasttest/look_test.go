package holdfasttest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
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

// AwaitHeld and AwaitWaiters wait for what other goroutines do.
func TestAwait_WaitsForOthers(t *testing.T) {
	inBothWorlds(t, func(t *testing.T) {
		s := holdfasttest.NewServer(t)
		results := make(chan (<-chan holdfast.Result), 2)
		m, other := s.NewManager(), s.NewManager()
		time.AfterFunc(20*time.Millisecond, func() {
			results <- m.Mutex("x").LockAsync(t.Context())
			s.AwaitHeld("x")
			results <- other.Mutex("x").LockAsync(t.Context())
		})
		s.AwaitHeld("x")
		s.AwaitWaiters("x", 1)
		first := <-<-results
		if first.Err != nil {
			t.Fatal(first.Err)
		}
		if err := first.Lease.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		if got := <-<-results; got.Err != nil {
			t.Error(got.Err)
		}
	})
}

// What is awaited in vain fails the test, and says how things are.
func TestAwait_SaysHowThingsAre(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		failed := failure(func(tb *recorder) {
			s := holdfasttest.NewServer(tb)
			s.Hold(s.NewManager().Mutex("jobs"))
			s.AwaitHeld("job")
		})
		wantFailure(t, failed, `holdfasttest: after 10s, "job" is not held: held by 0, waited for by 0; held are ["jobs"]`)
		failed = failure(func(tb *recorder) {
			s := holdfasttest.NewServer(tb)
			s.Hold(s.NewManager().Mutex("job"))
			s.AwaitWaiters("job", 2)
		})
		wantFailure(t, failed, `holdfasttest: after 10s, "job" is not waited for by 2: held by 1, waited for by 0; held are ["job"]`)
		failed = failure(func(tb *recorder) {
			s := holdfasttest.NewServer(tb)
			s.Hold(s.NewManager().Mutex("job"))
			s.Hold(s.NewManager().Mutex("job"))
		})
		wantFailure(t, failed, `holdfasttest: Hold: after 10s: holdfast: lock not acquired: "job"`)
		failed = failure(func(tb *recorder) {
			s := holdfasttest.NewServer(tb)
			s.Down()
			s.AwaitHeld("job")
		})
		wantFailure(t, failed, `holdfasttest: "job" is not held: holdfast: redis unavailable`)
		failed = failure(func(tb *recorder) { holdfasttest.NewServer(tb).AwaitHeld("") })
		wantFailure(t, failed, "holdfast: invalid lock name")
	})
}
