package holdfast_test

import (
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// AC-78: however often a Multi has to begin again before it gets its locks, each has the
// lease that it was made with.
func TestMulti_RetriesKeepTheLease(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m, other := managerOn(t, srv), managerOn(t, srv)
	const short, long = 3 * time.Second, 50 * time.Second
	l := multi(t, m.Mutex("a", holdfast.WithLease(short)), m.Mutex("b", holdfast.WithLease(long)), m.Mutex("c", holdfast.WithFixedLease(short)))
	stop := make(chan struct{})
	var busy sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		busy.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					mustUnlock(t, mustLock(t, other.Mutex(name)))
				}
			}
		})
	}
	commands := m.Stats().Commands
	for range 20 {
		lease := mustLock(t, l)
		for name, want := range map[string]time.Duration{"a": short, "b": long, "c": short} {
			// What the server grants is for a short time at first.
			if ttl := srv.Admin().PTTL(t.Context(), name).Val(); ttl <= 0 || ttl > want {
				t.Errorf("TTL of %s is %v, its lease %v", name, ttl, want)
			}
		}
		if left := time.Until(lease.Deadline()); left <= 0 || left > short {
			t.Errorf("the deadline is in %v", left)
		}
		mustUnlock(t, lease)
	}
	close(stop)
	busy.Wait()
	if n := m.Stats().Commands - commands; n < 20*5 {
		t.Errorf("%d commands: nothing was retried", n)
	}
}
