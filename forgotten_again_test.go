package holdfast_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// periods is how often a lock is taken and released twice, in five calls, before go-redis stops waiting on the first
// dead connection.
const periods = 6

// commandPool is the size of a pool that the application's own commands have filled.
const commandPool = 50

// Before each call all connections of a client die, and new ones work. However often that happens within the read
// timeout, each call finds a connection within its usual patience.
func TestForgotten_AgainAndAgain(t *testing.T) {
	t.Parallel()
	pools := map[string]func(*redis.Options){
		"default pools": nil,
		"small pools":   func(o *redis.Options) { o.PoolSize, o.PipelinePoolSize = 2, 2 },
		"full pools":    func(o *redis.Options) { o.PoolSize = commandPool },
	}
	locks := map[string]func(m []*holdfast.Manager) (holdfast.Locker, error){
		"Mutex":     func(m []*holdfast.Manager) (holdfast.Locker, error) { return m[0].Mutex("a"), nil },
		"FairMutex": func(m []*holdfast.Manager) (holdfast.Locker, error) { return m[0].FairMutex("a"), nil },
		"read side": func(m []*holdfast.Manager) (holdfast.Locker, error) { return m[0].RWMutex("a").RLocker(), nil },
		"Multi": func(m []*holdfast.Manager) (holdfast.Locker, error) {
			return holdfast.NewMulti(m[0].Mutex("a"), m[0].FairMutex("b"), m[1].Mutex("c"))
		},
		"Redlock": func(m []*holdfast.Manager) (holdfast.Locker, error) {
			return holdfast.NewRedlock(m[0].Mutex("a"), m[1].Mutex("a"), m[2].Mutex("a"))
		},
	}
	for poolName, change := range pools {
		for lockName, lockOf := range locks {
			if poolName != "default pools" && lockName != "Mutex" && lockName != "Multi" {
				continue // what differs is below the locks
			}
			t.Run(poolName+"/"+lockName, func(t *testing.T) {
				t.Parallel()
				var managers []*holdfast.Manager
				var proxies []*redistest.Proxy
				for range 3 {
					p := redistest.Start(t).Proxy(t)
					client := p.ClientWith(t, func(o *redis.Options) {
						o.ReadTimeout = time.Hour // a slow machine takes longer than 5 s
						if change != nil {
							change(o)
						}
					})
					if client.Options().PoolSize == commandPool {
						fill(t, p, client)
					}
					m, err := holdfast.New(client)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = m.Close(context.Background()) })
					managers, proxies = append(managers, m), append(proxies, p)
				}
				l, err := lockOf(managers)
				if err != nil {
					t.Fatal(err)
				}
				mustUnlock(t, mustLock(t, l))
				// succeeds makes a call behind dead connections. The machine may stand still for longer than
				// the call waits, so it is made again, over the connections that there are then.
				succeeds := func(call func(context.Context) error) {
					t.Helper()
					for _, p := range proxies {
						p.Forget()
					}
					atLast(t, func() error { return call(context.Background()) })
				}
				for range periods {
					var lease *holdfast.Lease
					take := func(lock func(context.Context) (*holdfast.Lease, error)) func(context.Context) error {
						return func(ctx context.Context) (err error) {
							ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
							defer cancel()
							lease, err = lock(ctx)
							return err
						}
					}
					succeeds(take(l.TryLock))
					succeeds(func(ctx context.Context) error { return lease.Extend(ctx, time.Minute) })
					succeeds(func(ctx context.Context) error { return lease.Unlock(ctx) })
					succeeds(take(l.Lock))
					succeeds(func(ctx context.Context) error { return lease.Unlock(ctx) })
				}
			})
		}
	}
}

// fill has client open all connections that its pool for single commands may have.
func fill(t *testing.T, p *redistest.Proxy, client *redis.Client) {
	t.Helper()
	p.Freeze(true)
	var wg sync.WaitGroup
	for range commandPool {
		wg.Go(func() { client.Ping(t.Context()) })
	}
	redistest.Eventually(t, patience, "all connections are in use", func() bool {
		return client.PoolStats().TotalConns >= commandPool
	})
	p.Freeze(false)
	wg.Wait()
}
