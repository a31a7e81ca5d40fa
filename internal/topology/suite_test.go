package topology

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// mutexInCluster is the mutex over a cluster's client. Its only master is the server of
// the scenario, or the proxy before it, so that every fault of the suite can be injected;
// the tests beside this one have real clusters.
var mutexInCluster = locktest.Kind{
	Name: "mutex",
	Lock: func(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker {
		return m.Mutex(name, opts...)
	},
	Async: func(l holdfast.Locker, ctx context.Context) <-chan holdfast.Result {
		return l.(*holdfast.Mutex).LockAsync(ctx)
	},
	Client: func(opt *redis.Options) redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{
			Username: opt.Username,
			Password: opt.Password,
			ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
				return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: opt.Addr}}}}, nil
			},
		})
	},
}

func TestMutexInCluster(t *testing.T) { locktest.Run(t, mutexInCluster) }
