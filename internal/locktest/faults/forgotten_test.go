package faults

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// farAway is the round trip over a satellite, or to a region far away.
const farAway = 1250 * time.Millisecond

// ForceUnlock is not repeated: a copy that comes late would free the next owner's lock.
func TestForgotten_ForceUnlockIsSentOnce(t *testing.T) {
	srv := redistest.Start(t)
	p := srv.Proxy(t)
	m := locktest.ManagerAsIs(t, p.Client(t))
	holder := locktest.ManagerOn(t, srv)
	got := locktest.MustLock(t, holder.Mutex("a"))
	force := locktest.ScriptOn("a", "force_release")
	gate := p.HoldReply(force)
	done := redistest.Begin(func() error { _, err := m.ForceUnlock(context.Background(), "a"); return err })
	gate.Wait(t)
	locktest.WantErr(t, <-done, holdfast.ErrUnavailable, nil)
	redistest.Want(t, p.Count(force), 1, "sent %d times")
	gate.Release()
	_ = got.Unlock(context.Background())
}

// A server, or what is between, closes all idle connections. Behind TLS go-redis does not see it, and each call finds a connection that works.
func TestHungUp_BehindTLS(t *testing.T) {
	redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
		p := srv.Proxy(t)
		m := locktest.ManagerFor(t, p.ClientWith(t, func(o *redis.Options) { o.TLSConfig = new(tls.Config) })) // which the dialer of the proxy leaves out
		var lease *holdfast.Lease
		var ticket string
		for n, call := range []func(ctx context.Context) error{
			func(ctx context.Context) (err error) { lease, err = m.Mutex("a").TryLock(ctx); return err },
			func(ctx context.Context) error { return lease.Extend(ctx, time.Minute) },
			func(ctx context.Context) (err error) { ticket, err = lease.Detach(ctx, time.Minute); return err },
			func(ctx context.Context) (err error) { lease, err = m.Attach(ctx, ticket); return err },
			func(ctx context.Context) error { return lease.Unlock(ctx) },
			func(ctx context.Context) (err error) { lease, err = m.Semaphore("s", 4).TryAcquire(ctx, 2); return err },
			func(ctx context.Context) error { return m.Semaphore("s", 4).SetPermits(ctx, 3) },
			func(ctx context.Context) (err error) { _, err = m.Inspect(ctx, "s"); return err },
			func(ctx context.Context) (err error) { _, err = m.ForceUnlock(ctx, "s"); return err },
		} {
			var wg sync.WaitGroup
			for i := range 100 {
				wg.Go(func() { locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex(fmt.Sprint(i)))) })
			}
			wg.Wait()
			synctest.Wait()
			p.Cut()
			began := time.Now()
			if err := call(t.Context()); err != nil {
				t.Errorf("call %d: %v", n+1, err)
			}
			if d := time.Since(began); d > 50*time.Millisecond { // a release pauses before it is repeated
				t.Errorf("call %d takes %v", n+1, d)
			}
		}
	})
}

// Connections are forgotten, and Redis is farther away than it was before. A new connection is given more time with each
// one that has had too little, and copies on dead connections keep no other copy from being sent, although no dead
// connection ends by itself.
func TestForgotten_FartherThanBefore(t *testing.T) {
	redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
		p := srv.Proxy(t)
		l := locktest.ManagerFor(t, p.ClientWith(t, func(o *redis.Options) { o.ReadTimeout = time.Hour })).Mutex("a")
		farther := func() { p.Forget(); p.Delay(farAway/2, 0) }
		locktest.MustUnlock(t, locktest.MustLock(t, l))
		farther()
		held := locktest.MustLock(t, l)
		farther()
		if err := held.Unlock(t.Context()); err != nil { // it waits for a second; the release goes on
			locktest.WantErr(t, err, holdfast.ErrUnavailable, holdfast.ErrLeaseLost)
		}
		locktest.MustUnlock(t, locktest.MustLock(t, locktest.ManagerOn(t, srv).Mutex("a")))
	})
}

// Where Redis is far away, what its round trip is has been learned from the first answer: a request waits for
// longer than the second that it has elsewhere.
func TestRoundTrip_FarAway(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		p := redistest.Start(t).Proxy(t)
		m, err := holdfast.New(p.Client(t))
		redistest.Must(t, err)
		ctx := context.Background()
		l := m.Mutex("a")
		p.Delay(farAway/2, 0)
		locktest.MustUnlock(t, locktest.MustLock(t, l)) // Lock waits for as long as it takes to connect
		for _, lock := range []func(context.Context) (*holdfast.Lease, error){l.TryLock, l.Lock} {
			got, err := lock(ctx)
			redistest.Must(t, err)
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
		redistest.Must(t, locktest.ErrOf(l.TryLock(ctx)))
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
				locktest.AtLast(t, func() error { // the machine may stand still for as long as the call waits
					p := srv.Proxy(t)
					p.Delay(trip/2, 0)
					m := locktest.ManagerAsIs(t, p.Client(t))
					tries++
					name := fmt.Sprint(t.Name(), tries)
					err := call(m, name)
					if n := p.Count(locktest.ScriptOn(name, script)); err == nil && n != 1 {
						t.Errorf("sent %d times", n)
					}
					return err
				})
			})
		}
	}
}

// Where a new connection takes seconds, because of DNS, TLS or a service that gives tokens, and connections are closed when they are
// idle, a call that needs one waits for it, as a plain command does.
func TestSlowDial(t *testing.T) {
	const idle = 50 * time.Millisecond
	for _, takes := range []time.Duration{1500 * time.Millisecond, 2500 * time.Millisecond, 4500 * time.Millisecond} {
		for what, slow := range map[string]func(o *redis.Options, wait func(context.Context)){
			"dial": func(o *redis.Options, wait func(context.Context)) {
				dial := o.Dialer
				if dial == nil {
					dial = redis.NewDialer(o)
				}
				o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
					wait(ctx)
					return dial(ctx, network, addr)
				}
			},
			"token": func(o *redis.Options, wait func(context.Context)) {
				username, password := o.Username, o.Password
				o.CredentialsProviderContext = func(ctx context.Context) (string, string, error) {
					wait(ctx)
					return username, password, nil
				}
			},
		} {
			t.Run(fmt.Sprintf("%s/%v", what, takes), func(t *testing.T) {
				redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
					var slowly atomic.Bool
					var waits atomic.Int64
					client := srv.ClientWith(t, func(o *redis.Options) {
						o.ConnMaxIdleTime = idle
						slow(o, func(ctx context.Context) {
							if slowly.Load() {
								waits.Add(1)
								select {
								case <-time.After(takes):
								case <-ctx.Done():
								}
							}
						})
					})
					m, err := holdfast.New(client)
					redistest.Must(t, err)
					l := m.Mutex("a", holdfast.WithLease(30*time.Second))
					both, err := holdfast.NewMulti(l, m.Mutex("b"))
					redistest.Must(t, err)
					locktest.MustUnlock(t, locktest.MustLock(t, l)) // its connections were quick until now
					slowly.Store(true)
					var got *holdfast.Lease
					for name, call := range map[string]func(context.Context) error{
						"TryLock": func(ctx context.Context) (err error) { got, err = l.TryLock(ctx); return err },
						"Lock":    func(ctx context.Context) (err error) { got, err = l.Lock(ctx); return err },
						"Multi":   func(ctx context.Context) (err error) { got, err = both.TryLock(ctx); return err },
						"Inspect": func(ctx context.Context) (err error) { _, err = m.Inspect(ctx, "a"); return err },
					} {
						for range 2 {
							time.Sleep(2 * idle) // until go-redis closes its connections
							if err := call(t.Context()); err != nil {
								t.Errorf("%s: %v", name, err)
							}
							if got == nil {
								continue
							}
							time.Sleep(2 * idle)
							if err := got.Unlock(t.Context()); err != nil {
								t.Errorf("Unlock after %s: %v", name, err)
							}
							got = nil
						}
					}
					t.Logf("%d connections were made slowly", waits.Load())

					time.Sleep(2 * idle)
					ctx, cancel := context.WithTimeout(t.Context(), 2*idle)
					defer cancel()
					begun := time.Now()
					if _, err := l.TryLock(ctx); err == nil {
						t.Error("TryLock returns without a connection")
					}
					if late := time.Since(begun) - 2*idle; late > 50*time.Millisecond && testing.Short() {
						t.Errorf("TryLock returns %v after its context has ended", late)
					}
					_ = m.Close(context.Background())
				})
			})
		}
	}
}
