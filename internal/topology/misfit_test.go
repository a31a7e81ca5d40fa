package topology

import (
	"context"
	"errors"
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
