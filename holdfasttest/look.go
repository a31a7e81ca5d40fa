package holdfasttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
)

// patience is how long a Server waits for a lock or a state of it. In a bubble it is of the bubble's time.
const patience = 10 * time.Second

// Hold locks l and returns its lease. It fails the test if l is not free within 10 s. With a lock of another Manager, another
// process holds the lock:
//
//	other := server.NewManager()
//	lease := server.Hold(other.Mutex("order:7"))
func (s *Server) Hold(l holdfast.Locker) *holdfast.Lease {
	s.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	start := time.Now()
	lease, err := l.Lock(ctx)
	if err != nil {
		s.fatalf("Hold: after %v: %v", time.Since(start).Round(time.Millisecond), err)
	}
	return lease
}

// Held returns the names of the locks that are held, sorted. At the end of a test they are those that the tested code has not
// unlocked. It fails the test if Redis is away.
func (s *Server) Held() []string {
	s.tb.Helper()
	names := []string{}
	keys, _ := s.redis.Do("keys", "*").([]any)
	for _, key := range keys {
		name := key.(string)
		info, err := s.look.Inspect(context.Background(), name)
		if errors.Is(err, holdfast.ErrInvalidName) {
			continue // a key beside a lock's own, or of another program
		}
		if err != nil {
			s.fatalf("Held: %v", err)
		}
		if info.Held {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// AwaitHeld waits until the lock of that name is held. It fails the test after 10 s.
func (s *Server) AwaitHeld(name string) {
	s.tb.Helper()
	s.await(name, "held", func(i holdfast.Info) bool { return i.Held })
}

// AwaitWaiters waits until at least n wait for the lock of that name in the queue in Redis: there every process stands once, but
// each caller of a FairMutex. A caller that waits for a lock of its own Manager is not in that queue, see [holdfast.Stats]. AwaitWaiters fails the
// test after 10 s.
func (s *Server) AwaitWaiters(name string, n int) {
	s.tb.Helper()
	s.await(name, fmt.Sprintf("waited for by %d", n), func(i holdfast.Info) bool { return i.Waiters >= n })
}

func (s *Server) await(name, what string, is func(holdfast.Info) bool) {
	s.tb.Helper()
	for end := time.Now().Add(patience); ; {
		info, err := s.look.Inspect(context.Background(), name)
		switch {
		case err == nil && is(info):
			return
		case time.Now().Before(end) && !errors.Is(err, holdfast.ErrInvalidName) && !errors.Is(err, holdfast.ErrClosed):
			time.Sleep(5 * time.Millisecond)
		case err != nil:
			s.fatalf("%q is not %s: %v", name, what, err)
		default:
			s.fatalf("after %v, %q is not %s: held by %d, waited for by %d; held are %q", patience, name, what, len(info.Holders), info.Waiters, s.Held())
		}
	}
}
