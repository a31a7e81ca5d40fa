package faults

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// periods is how often a lock is taken and released twice, in five calls, before go-redis stops waiting on the first
// dead connection.
const periods = 6

// commandPool is the size of a pool that the application's own commands have filled.
const commandPool = 50

// oneConnection is the pool that has one for all requests.
const oneConnection = "one connection"

// Before each call all connections of a client die, and new ones work. However often that happens within the read
// timeout, each call finds a connection within its usual patience.
func TestForgotten_AgainAndAgain(t *testing.T) {
	t.Parallel()
	pools := map[string]func(*redis.Options){
		"default pools":   nil,
		"small pools":     func(o *redis.Options) { o.PoolSize, o.PipelinePoolSize = 2, 2 },
		"full pools":      func(o *redis.Options) { o.PoolSize = commandPool },
		"two connections": func(o *redis.Options) { o.PoolSize, o.PipelinePoolSize = 1, 1 },
		oneConnection:     func(o *redis.Options) { o.PoolSize, o.PipelinePoolSize = 1, -1 },
		"other options": func(o *redis.Options) {
			o.PipelinePoolSize, o.PoolFIFO, o.ContextTimeoutEnabled, o.Protocol = -1, true, true, 2
		},
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
			if poolName != "default pools" && poolName != oneConnection && lockName != "Mutex" && lockName != "Multi" {
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
					managers, proxies = append(managers, locktest.ManagerFor(t, client)), append(proxies, p)
				}
				l, err := lockOf(managers)
				redistest.Must(t, err)
				locktest.MustUnlock(t, locktest.MustLock(t, l))
				// succeeds makes a call behind dead connections, when nothing is left of the one before: a majority does not wait for a
				// member whose release is not answered, and a TryLock would find it taken.
				succeeds := func(call func(context.Context) error) {
					t.Helper()
					locktest.Works(t, func() error {
						for i, m := range managers {
							redistest.Eventually(t, locktest.Patience, "the call before is over", func() bool { return locktest.Pending(m) == 0 })
							proxies[i].Forget()
						}
						return call(t.Context())
					})
				}
				for range periods {
					var lease *holdfast.Lease
					take := func(lock func(context.Context) (*holdfast.Lease, error)) func(context.Context) error {
						return func(ctx context.Context) (err error) {
							ctx, cancel := context.WithTimeout(ctx, locktest.Patience)
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
	redistest.Eventually(t, locktest.Patience, "all connections are in use", func() bool {
		return client.PoolStats().TotalConns >= commandPool
	})
	p.Freeze(false)
	wg.Wait()
}

// A client that has one connection for requests renews leases, and hears messages, when it has died together with
// the one for messages.
func TestForgotten_OneConnection(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	p := srv.Proxy(t)
	m, err := holdfast.New(p.ClientWith(t, func(o *redis.Options) {
		o.ReadTimeout, o.PoolSize, o.PipelinePoolSize = time.Hour, 1, -1
	}), holdfast.WithLease(3*time.Second), holdfast.WithPollInterval(time.Hour))
	redistest.Must(t, err)
	defer m.Close(context.Background())
	other := locktest.ManagerOn(t, srv)
	locktest.AtLast(t, func() error { // the machine may stand still for longer than the lease
		kept, held := locktest.MustLock(t, m.Mutex("kept")), locktest.MustLock(t, other.Mutex("a"))
		waiter := m.Mutex("a").LockAsync(t.Context())
		redistest.Eventually(t, locktest.Patience, "it waits", func() bool {
			info, err := other.Inspect(t.Context(), "a")
			return err == nil && info.Waiters > 0
		})
		before := kept.Deadline()
		p.Forget()
		redistest.Eventually(t, locktest.Patience, "it is renewed, or lost", func() bool {
			return kept.Err() != nil || kept.Deadline().After(before)
		})
		locktest.MustUnlock(t, held)
		locktest.MustUnlock(t, locktest.Granted(t, waiter))
		if err := kept.Err(); err != nil {
			return err
		}
		locktest.MustUnlock(t, kept)
		return nil
	})
}

// A connection for messages that dies while it introduces itself is replaced, whatever the client's read timeout is.
func TestForgotten_IntroductionOfTheMessenger(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	p := srv.Proxy(t)
	m, err := holdfast.New(p.ClientWith(t, func(o *redis.Options) {
		o.ReadTimeout, o.PoolSize, o.PipelinePoolSize = time.Hour, 1, -1 // so that no other one is made
	}))
	redistest.Must(t, err)
	defer m.Close(context.Background())
	locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex("b")))
	held := locktest.MustLock(t, locktest.ManagerOn(t, srv).Mutex("a"))
	p.SwallowReply(redistest.Command("hello"), 1)
	waiter := m.Mutex("a").LockAsync(t.Context())
	redistest.Eventually(t, locktest.Patience, "it hears messages", func() bool { return p.Count(redistest.Command("subscribe")) > 0 })
	locktest.MustUnlock(t, held)
	if got := <-waiter; got.Err != nil {
		t.Error(got.Err)
	}
}

// The client of a cluster cannot be given another read timeout, so each request on a dead connection keeps one of 24 lanes
// until its own. docs/SETUP.md says how often the connections may die before that shows.
func TestForgotten_HowOftenInACluster(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := redistest.StartVirtual(t).Proxy(t)
		opt := p.Options()
		client := redis.NewClusterClient(&redis.ClusterOptions{
			Username: opt.Username, Password: opt.Password, Dialer: opt.Dialer, PoolSize: 50, ReadTimeout: time.Minute,
			ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
				return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: opt.Addr}}}}, nil
			},
		})
		defer client.Close()
		m := locktest.ManagerAsIs(t, client)
		l := m.Mutex("a")
		locktest.MustUnlock(t, locktest.MustLock(t, l))
		calls, began := 0, time.Now()
		var err error
		for lease := (*holdfast.Lease)(nil); err == nil; calls++ {
			p.Forget()
			if lease == nil {
				lease, err = l.TryLock(t.Context())
			} else {
				err, lease = lease.Unlock(t.Context()), nil
			}
		}
		if took := time.Since(began); calls-1 != 23 || took > 10*time.Second {
			t.Errorf("%d calls have succeeded, in %v: %v", calls-1, took, err)
		}
		time.Sleep(time.Minute) // and then they do again
		locktest.MustUnlock(t, locktest.MustLock(t, l))
	})
}

// While the server stands still, requests wait for it over the connections that a client may have. If all of these die meanwhile, the next
// caller finds one that works all the same.
func TestForgotten_WhileTheServerStoodStill(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"two connections": 1, "small pools": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := redistest.Start(t).Proxy(t)
			client := p.ClientWith(t, func(o *redis.Options) { o.ReadTimeout, o.PoolSize, o.PipelinePoolSize = time.Hour, size, size })
			m := locktest.ManagerFor(t, client)
			locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex("a")))
			if err := client.Ping(t.Context()).Err(); err != nil { // a connection of the other pool
				t.Fatal(err)
			}
			p.Freeze(true)
			for n := range 2*size + 1 {
				_, err := m.Mutex(strconv.Itoa(n)).TryLock(t.Context())
				locktest.WantErr(t, err, holdfast.ErrUnavailable, nil)
			}
			p.Forget()
			p.Freeze(false)
			var lease *holdfast.Lease
			locktest.Works(t, func() (err error) {
				lease, err = m.Mutex("a").TryLock(t.Context())
				return err
			})
			locktest.Works(t, func() error { return lease.Unlock(t.Context()) })
		})
	}
}
