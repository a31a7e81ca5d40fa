package vredis_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/vredis"
)

// world runs the library on a server inside a bubble. When f returns, nothing may be left: no key, no goroutine.
func world(t *testing.T, f func(t *testing.T, s *vredis.Server, managers []*holdfast.Manager)) {
	synctest.Test(t, func(t *testing.T) {
		s := vredis.New(vredis.Options{})
		var managers []*holdfast.Manager
		for range 2 {
			rdb := redis.NewClient(&redis.Options{Addr: s.Addr(), Dialer: s.Dial})
			defer rdb.Close()
			m, err := holdfast.New(rdb)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { want(t, "Close", m.Close(t.Context()), nil) }()
			managers = append(managers, m)
		}
		f(t, s, managers)
		want(t, "keys left", s.Do("dbsize"), int64(0))
	})
}

// A lease of an hour of fake time is renewed all the while.
func TestLibrary_RenewsForAnHour(t *testing.T) {
	world(t, func(t *testing.T, s *vredis.Server, m []*holdfast.Manager) {
		lease, err := m[0].Mutex("x").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 60 {
			time.Sleep(time.Minute)
			if !lease.Valid() || s.Do("exists", "x") != int64(1) {
				t.Fatal("lost")
			}
			if _, err := m[1].Mutex("x").TryLock(t.Context()); !errors.Is(err, holdfast.ErrNotAcquired) {
				t.Fatalf("a lock that is held: %v", err)
			}
		}
		want(t, "Unlock", lease.Unlock(t.Context()), nil)
	})
}

// Every kind excludes, and each caller has its turn.
func TestLibrary_ContendedLocksExclude(t *testing.T) {
	for _, kind := range []string{"mutex", "fair", "write"} {
		t.Run(kind, func(t *testing.T) {
			world(t, func(t *testing.T, s *vredis.Server, m []*holdfast.Manager) {
				var wg sync.WaitGroup
				inside, done := 0, 0 // written by the holder
				for i := range 8 {
					wg.Go(func() {
						for range 10 {
							var lease *holdfast.Lease
							var err error
							switch kind {
							case "mutex":
								lease, err = m[i%2].Mutex("x").Lock(t.Context())
							case "fair":
								lease, err = m[i%2].FairMutex("x").Lock(t.Context())
							default:
								lease, err = m[i%2].RWMutex("x").Lock(t.Context())
							}
							if err != nil {
								t.Error(err)
								return
							}
							if inside++; inside != 1 {
								t.Errorf("%d callers inside", inside)
							}
							time.Sleep(20 * time.Millisecond)
							inside--
							done++
							if err := lease.Unlock(t.Context()); err != nil {
								t.Error(err)
							}
						}
					})
				}
				wg.Wait()
				want(t, "sections", done, 80)
			})
		})
	}
}

func TestLibrary_ReadersShare(t *testing.T) {
	world(t, func(t *testing.T, s *vredis.Server, m []*holdfast.Manager) {
		a, err := m[0].RWMutex("x").RLock(t.Context())
		b, err2 := m[1].RWMutex("x").RLock(t.Context())
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		entered := make(chan *holdfast.Lease)
		go func() {
			w, err := m[0].RWMutex("x").Lock(t.Context())
			if err != nil {
				t.Error(err)
			}
			entered <- w
		}()
		time.Sleep(5 * time.Minute)
		select {
		case <-entered:
			t.Error("a writer beside readers")
		default:
		}
		want(t, "Unlock", a.Unlock(t.Context()), nil)
		want(t, "Unlock", b.Unlock(t.Context()), nil)
		want(t, "Unlock", (<-entered).Unlock(t.Context()), nil)
	})
}

// A lease ends when the server has been away for as long as it lasts, and the name can be locked again.
func TestLibrary_LosesALeaseToARestart(t *testing.T) {
	world(t, func(t *testing.T, s *vredis.Server, m []*holdfast.Manager) {
		lease, err := m[0].Mutex("x").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.Restart(false)
		<-lease.Done()
		if err := lease.Err(); !errors.Is(err, holdfast.ErrLeaseLost) {
			t.Errorf("got %v", err)
		}
		again, err := m[1].Mutex("x").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want(t, "Unlock", again.Unlock(t.Context()), nil)
		_ = lease.Unlock(t.Context())
	})
}

// BenchmarkScript is one script by EVALSHA: an uncontended acquire and its release.
func BenchmarkScript(b *testing.B) {
	s := vredis.New(vredis.Options{})
	scripts := libraryScripts(b)
	acquire, release := s.Do("script", "load", scripts["lock_acquire"]).(string), s.Do("script", "load", scripts["lock_release"]).(string)
	for i := range b.N {
		id := fmt.Sprint(heardManager, i)
		s.Do("evalsha", acquire, "4", "x", "q", "d", "t", id, "30000", "none heard 0 30000 1 1 publish")
		s.Do("evalsha", release, "3", "x", "redisson_lock_queue:{x}", "d", id, "publish", "30000 1 1")
	}
}
