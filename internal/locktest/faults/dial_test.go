package faults

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

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
