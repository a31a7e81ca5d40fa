package holdfasttest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Code under test may make its client and its Manager itself, and close them.
func TestServer_ServesClientsOfTheCaller(t *testing.T) {
	inBothWorlds(t, func(t *testing.T) {
		s := holdfasttest.NewServer(t)
		for _, client := range []*redis.Client{s.Client(), redis.NewClient(s.Options())} {
			m, err := holdfast.New(client)
			redistest.Must(t, err)
			lease := s.Hold(m.Mutex("x"))
			redistest.Check(t, lease.Unlock(t.Context()))
			redistest.Check(t, m.Close(t.Context()))
			redistest.Check(t, client.Close())
		}
	})
}

// More callers at a time than go-redis's pools have connections by default, in one bubble after the other and in several at a time: no bubble gets a
// timer of another one, which would end the program.
func TestServer_ManyCallersInManyBubbles(t *testing.T) {
	for i := range 2 {
		t.Run(fmt.Sprint("beside another ", i), func(t *testing.T) {
			t.Parallel()
			for range 3 {
				synctest.Test(t, func(t *testing.T) {
					s := holdfasttest.NewServer(t)
					m, client := s.NewManager(), s.Client()
					s.Hang()
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					var wg sync.WaitGroup
					for n := range min(15*runtime.GOMAXPROCS(0), 900) {
						wg.Go(func() { _ = client.Get(ctx, "x").Err() })
						wg.Go(func() { _, _ = m.Mutex(fmt.Sprint(n)).Lock(ctx) })
					}
					wg.Wait()
				})
			}
		})
	}
}

// The end of the test ends what was made from the server, whatever state that is in: locks are held, callers wait, Redis is away.
func TestServer_ClosesEverythingAtTheEnd(t *testing.T) {
	for name, fault := range map[string]func(*holdfasttest.Server){
		"healthy":   func(*holdfasttest.Server) {},
		"down":      (*holdfasttest.Server).Down,
		"hanging":   (*holdfasttest.Server).Hang,
		"restarted": (*holdfasttest.Server).Restart,
		"both":      func(s *holdfasttest.Server) { s.Down(); s.Hang() },
	} {
		t.Run(name, func(t *testing.T) {
			inBothWorlds(t, func(t *testing.T) {
				var wg sync.WaitGroup
				t.Cleanup(wg.Wait) // runs after the server's: its callers have ended by then
				s := holdfasttest.NewServer(t)
				m, other := s.NewManager(), s.NewManager()
				for _, l := range []holdfast.Locker{m.Mutex("mutex"), m.FairMutex("fair"), m.RWMutex("rw")} {
					s.Hold(l)
				}
				for _, l := range []holdfast.Locker{other.Mutex("mutex"), other.FairMutex("fair"), other.RWMutex("rw").RLocker(), m.Mutex("mutex")} {
					wg.Go(func() {
						if lease, err := l.Lock(context.Background()); err == nil {
							<-lease.Done() // the holder's Manager was closed before its own
						} else if !errors.Is(err, holdfast.ErrClosed) {
							t.Errorf("a caller that waits at the end: %v", err)
						}
					})
				}
				for _, name := range []string{"mutex", "fair", "rw"} {
					s.AwaitWaiters(name, 1)
				}
				fault(s)
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				_, _ = other.Mutex("other").Lock(ctx) // keeps clients busy in the outage
			})
		})
	}
}

// Close may come early and more than once, and what comes after it fails.
func TestServer_CloseIsTheEnd(t *testing.T) {
	inBothWorlds(t, func(t *testing.T) {
		s := holdfasttest.NewServer(t)
		m := s.NewManager()
		lease := s.Hold(m.Mutex("x"))
		s.Close()
		s.Close()
		locktest.WantErr(t, lease.Err(), holdfast.ErrClosed, nil)
		_, err := m.Mutex("x").TryLock(t.Context())
		locktest.WantErr(t, err, holdfast.ErrClosed, nil)
		redistest.WantFailure(t, "holdfasttest: the server is closed", func(tb testing.TB) {
			s := holdfasttest.NewServer(tb)
			s.Close()
			_ = s.Client().Close() // NewManager makes one as well
		})
	})
}

// Close ends an outage first, so that it need not wait for answers that do not come.
func TestServer_CloseWaitsForNoOutage(t *testing.T) {
	for name, fault := range map[string]func(*holdfasttest.Server){"down": (*holdfasttest.Server).Down, "hanging": (*holdfasttest.Server).Hang} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := holdfasttest.NewServer(t)
				s.Hold(s.NewManager().Mutex("x"))
				fault(s)
				began := time.Now()
				s.Close()
				if took := time.Since(began); took > 50*time.Millisecond {
					t.Errorf("Close took %v of the bubble's time", took)
				}
			})
		})
	}
}

func TestServer_RefusesBadOptions(t *testing.T) {
	redistest.WantFailure(t, "holdfasttest: NewManager: holdfast: invalid option: WithLease", func(tb testing.TB) { holdfasttest.NewServer(tb).NewManager(holdfast.WithLease(-1)) })
}

// Without a test what would fail it panics.
func TestStart_PanicsWhereATestFails(t *testing.T) {
	s := holdfasttest.Start()
	defer s.Close()
	defer func() {
		if got := recover(); got != `holdfasttest: Lose: no Manager holds "x"; held are []` {
			t.Errorf("panic %v", got)
		}
	}()
	s.Lose("x")
}
