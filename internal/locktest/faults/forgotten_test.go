package faults

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// farAway is the round trip over a satellite, or to a region far away.
const farAway = 1250 * time.Millisecond

// The read side, several locks as one, and a majority find connections that work as well. Each is tried a few
// times: a machine can stand still for longer than a TryLock waits.
func TestForgotten_OtherLocks(t *testing.T) {
	t.Parallel()
	for name, lockOf := range map[string]func(m []*holdfast.Manager) (holdfast.Locker, error){
		"read side": func(m []*holdfast.Manager) (holdfast.Locker, error) { return m[0].RWMutex("a").RLocker(), nil },
		"Multi": func(m []*holdfast.Manager) (holdfast.Locker, error) {
			return holdfast.NewMulti(m[0].Mutex("a"), m[0].Mutex("b"), m[0].FairMutex("c"))
		},
		"Multi of two servers": func(m []*holdfast.Manager) (holdfast.Locker, error) {
			return holdfast.NewMulti(m[0].Mutex("a"), m[1].Mutex("a"))
		},
		"Redlock": func(m []*holdfast.Manager) (holdfast.Locker, error) {
			return holdfast.NewRedlock(m[0].Mutex("a"), m[1].Mutex("a"), m[2].Mutex("a"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var managers []*holdfast.Manager
			var proxies []*redistest.Proxy
			for range 3 {
				p := redistest.Start(t).Proxy(t)
				m, err := holdfast.New(p.Client(t))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = m.Close(context.Background()) })
				managers, proxies = append(managers, m), append(proxies, p)
			}
			forget := func() {
				for _, p := range proxies {
					p.Forget()
				}
			}
			l, err := lockOf(managers)
			if err != nil {
				t.Fatal(err)
			}
			locktest.MustUnlock(t, locktest.MustLock(t, l))
			var got *holdfast.Lease
			atLast(t, func() (err error) { forget(); got, err = l.TryLock(context.Background()); return err })
			atLast(t, func() error {
				forget()
				err := got.Unlock(context.Background())
				if err != nil {
					locktest.MustUnlock(t, got)
					got = locktest.MustLock(t, l)
				}
				return err
			})
			atLast(t, func() (err error) {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				forget()
				got, err = l.Lock(ctx)
				return err
			})
			locktest.MustUnlock(t, got)
		})
	}
}

// atLast plays f until it reports no error, a few times at most.
func atLast(t *testing.T, f func() error) {
	t.Helper()
	var err error
	for range 10 { // on a busy machine a few take too long
		if err = f(); err == nil {
			return
		}
		t.Logf("again: %v", err)
	}
	t.Fatal(err)
}

// ForceUnlock is not repeated: a copy that comes late would free the next owner's lock.
func TestForgotten_ForceUnlockIsSentOnce(t *testing.T) {
	srv := redistest.Start(t)
	p := srv.Proxy(t)
	m, err := holdfast.New(p.Client(t))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(context.Background())
	holder := locktest.ManagerOn(t, srv)
	got := locktest.MustLock(t, holder.Mutex("a"))
	force := locktest.ScriptOn("a", "force_release")
	gate := p.HoldReply(force)
	done := make(chan error, 1)
	go func() { _, err := m.ForceUnlock(context.Background(), "a"); done <- err }()
	gate.Wait(t)
	locktest.WantErr(t, <-done, holdfast.ErrUnavailable, nil)
	if n := p.Count(force); n != 1 {
		t.Errorf("sent %d times", n)
	}
	gate.Release()
	_ = got.Unlock(context.Background())
}

// Where Redis is far away, making a new connection takes longer than a second. A TryLock waits for that.
func TestForgotten_FarAway(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		p := redistest.Start(t).Proxy(t)
		m, err := holdfast.New(p.Client(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close(context.Background()) })
		l := m.Mutex("a")
		p.Delay(100*time.Millisecond, 0)
		for range 4 { // until the round trip is known
			locktest.MustUnlock(t, locktest.MustLock(t, l))
		}
		atLast(t, func() error {
			p.Forget()
			got, err := l.TryLock(context.Background())
			if err == nil {
				locktest.MustUnlock(t, got)
			}
			return err
		})
	})
}

// Where Redis is far away, what its round trip is has been learned from the first answer: a request waits for
// longer than the second that it has elsewhere.
func TestRoundTrip_FarAway(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		p := redistest.Start(t).Proxy(t)
		m, err := holdfast.New(p.Client(t))
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		l := m.Mutex("a")
		p.Delay(farAway/2, 0)
		locktest.MustUnlock(t, locktest.MustLock(t, l)) // Lock waits for as long as it takes to connect
		for _, lock := range []func(context.Context) (*holdfast.Lease, error){l.TryLock, l.Lock} {
			got, err := lock(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if err := got.Extend(ctx, time.Minute); err != nil {
				t.Error("Extend:", err)
			}
			if info, err := m.Inspect(ctx, "a"); err != nil || !info.Held {
				t.Errorf("Inspect: %+v, %v", info, err)
			}
			if err := got.Unlock(ctx); err != nil {
				t.Error("Unlock:", err)
			}
		}
		if _, err := l.TryLock(ctx); err != nil {
			t.Fatal(err)
		}
		if err := m.Close(ctx); err != nil {
			t.Error("Close:", err)
		}
	})
}

// Where Redis is far away, the first call of a manager waits for a connection, and nothing is taken for dead.
func TestRoundTrip_FirstCall(t *testing.T) {
	srv := redistest.Start(t)
	for _, trip := range []time.Duration{100 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond} {
		for script, call := range map[string]func(m *holdfast.Manager, name string) error{
			"lock_acquire": func(m *holdfast.Manager, name string) error {
				_, err := m.Mutex(name).TryLock(context.Background())
				return err
			},
			"multi_acquire": func(m *holdfast.Manager, name string) error {
				all, err := holdfast.NewMulti(m.Mutex(name), m.Mutex(name+"2"))
				if err != nil {
					return err
				}
				_, err = all.TryLock(context.Background())
				return err
			},
			"inspect": func(m *holdfast.Manager, name string) error {
				_, err := m.Inspect(context.Background(), name)
				return err
			},
		} {
			t.Run(fmt.Sprintf("%s/%v", script, trip), func(t *testing.T) {
				t.Parallel()
				tries := 0
				atLast(t, func() error { // the machine may stand still for as long as the call waits
					p := srv.Proxy(t)
					p.Delay(trip/2, 0)
					m, err := holdfast.New(p.Client(t))
					if err != nil {
						t.Fatal(err)
					}
					defer m.Close(context.Background())
					tries++
					name := fmt.Sprint(t.Name(), tries)
					err = call(m, name)
					if n := p.Count(locktest.ScriptOn(name, script)); err == nil && n != 1 {
						t.Errorf("sent %d times", n)
					}
					return err
				})
			})
		}
	}
}
