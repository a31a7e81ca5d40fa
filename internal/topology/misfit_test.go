package topology

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A client of the wrong kind for its server never gets a lock. Each call says so, and what to do, instead of waiting.
func TestMisfit(t *testing.T) {
	cluster, sentinel := redistest.StartCluster(t), redistest.StartSentinel(t, 1)
	plain := redistest.Start(t)
	const name = "a"
	elsewhere := cluster.OtherMaster(name)
	isNoCluster := func() redis.UniversalClient {
		o := cluster.Options()
		o.Addrs, o.Password = []string{plain.Options().Addr}, plain.Options().Password
		return redis.NewClusterClient(o)
	}
	for what, tc := range map[string]struct {
		client redis.UniversalClient
		opts   []holdfast.Option
		says   string
	}{
		"plain client of a cluster": {client: elsewhere.Client(t), says: "use redis.NewClusterClient"},
		"cluster's client":          {client: isNoCluster(), says: "use redis.NewClient"},
		"cluster's client, acknowledged": {
			client: isNoCluster(), opts: []holdfast.Option{holdfast.WithReplicas(1, time.Second)}, says: "use redis.NewClient",
		},
		"unknown master": {
			client: redis.NewFailoverClient(func() *redis.FailoverOptions { o := sentinel.Options(); o.MasterName = "unknown"; return o }()),
			says:   "check MasterName",
		},
		"Redis for Sentinel": {
			client: redis.NewFailoverClient(func() *redis.FailoverOptions {
				o := sentinel.Options()
				o.SentinelAddrs, o.SentinelPassword = []string{plain.Options().Addr}, plain.Options().Password
				return o
			}()),
			says: "unknown command",
		},
		"Sentinel for Redis": {client: sentinel.Sentinels()[0].Client(t), says: "unknown command"},
		"database of a cluster": {
			client: cluster.Owner(name).ClientWith(t, func(o *redis.Options) { o.DB = 3 }), says: "SELECT is not allowed",
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			t.Cleanup(func() { _ = tc.client.Close() })
			l := manager(t, tc.client, tc.opts...).Mutex(name)
			for call, lock := range map[string]func(context.Context) (*holdfast.Lease, error){"Lock": l.Lock, "TryLock": l.TryLock} {
				_, err := lock(within(t))
				wantMisfit(t, call, err, tc.says)
			}
		})
	}
}

func wantMisfit(t *testing.T, call string, err error, says string) {
	t.Helper()
	if !errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: %v", call, err)
	}
}

// Where some names are at the one node that a plain client knows, and after the address of a master has led to a replica, a
// Lock ends when the time is over in which that may change.
func TestMisfit_Later(t *testing.T) {
	cluster, sentinel := redistest.StartCluster(t), redistest.StartSentinel(t, 1)
	replica := sentinel.Nodes()[0]
	if replica == sentinel.Master() {
		replica = sentinel.Nodes()[1]
	}
	there, elsewhere := "b", cluster.OtherMaster("a")
	for cluster.Owner(there) != elsewhere {
		there += "b"
	}
	for says, tc := range map[string]struct {
		server *redistest.Server
		first  string // a name that the server has; "": none
	}{
		"use redis.NewClusterClient": {elsewhere, there},
		"redis.NewFailoverClient":    {replica, ""},
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			m := manager(t, tc.server.Client(t))
			if tc.first != "" {
				locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex(tc.first)))
			}
			_, err := m.Mutex("a").Lock(within(t))
			wantMisfit(t, "Lock", err, says)
		})
	}
}

// A channel that is denied is asked for again after pauses. Others of the same master are heard meanwhile, and no
// connection ends because of it.
func TestPublish_OneChannelIsForbidden(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	f := newForeigner(t, c, holdfast.PublishAuto)
	permit(t, c.Nodes(), "some", strings.Fields("resetchannels on >secret ~* +@all &holdfast_* &redisson_*{fine*"))
	client := c.ClientWith(t, func(o *redis.ClusterOptions) { o.Username, o.Password = "some", "secret" })
	pauses := make(pausesLogged, 1000)
	m := manager(t, client, append(unpolled, holdfast.WithLogger(slog.New(pauses)))...)
	var fine []string
	for i := 0; len(fine) < 5; i++ {
		if n := fmt.Sprint("fine", i); c.Owner(n) == c.Owner(name) {
			fine = append(fine, n)
		}
	}
	got := make(map[string]<-chan *holdfast.Lease)
	for _, n := range append(fine, name) {
		f.lock(n)
		got[n] = wait(t, m, n)
	}
	for most := time.Duration(0); most < time.Second/2; {
		select {
		case d := <-pauses:
			most = max(most, d)
		case <-time.After(patience):
			t.Fatalf("no pause was longer than %v", most)
		}
	}
	for _, n := range fine {
		f.awaitListeners(n, 1)
		f.unlock(n)
		locktest.MustUnlock(t, <-got[n])
		delete(got, n)
	}
	redistest.WantMost(t, m.Stats().Reconnects, 0, "%d reconnections")
	f.unlock(name)
	permit(t, c.Nodes(), "some", strings.Fields("on >secret ~* +@all &*"))
	for _, g := range got {
		locktest.MustUnlock(t, <-g)
	}
}

// pausesLogged is a log handler that passes on how long the subscriber waits.
type pausesLogged chan time.Duration

func (pausesLogged) Enabled(context.Context, slog.Level) bool { return true }
func (p pausesLogged) WithAttrs([]slog.Attr) slog.Handler     { return p }
func (p pausesLogged) WithGroup(string) slog.Handler          { return p }

func (p pausesLogged) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "retry_in" {
			p <- a.Value.Duration()
		}
		return true
	})
	return nil
}
