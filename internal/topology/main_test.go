package topology

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

var (
	rounds = flag.Int("rounds", 0, "faults in each scenario of the report; 0: as many as fit into everybody's tests")
	update = flag.Bool("update", false, "write the report into docs/OPERATIONS.md")
)

func TestMain(m *testing.M) {
	redistest.RunRole(locktest.Roles(mutexInCluster))
	flag.Parse()
	code := m.Run()
	if err := published.write(*update && code == 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if err := redistest.Leaked(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

const (
	// lease outlives a fail-over, so that a lock that was replicated is kept.
	lease = 10 * time.Second
	// patience is for what must come; reaching it is a failure.
	patience = redistest.Patience
)

// manager returns a manager on client, closed at the end of the test.
func manager(t *testing.T, client redis.UniversalClient, opts ...holdfast.Option) *holdfast.Manager {
	t.Helper()
	return locktest.ManagerFor(t, client, append([]holdfast.Option{holdfast.WithLease(lease)}, opts...)...)
}

// within returns a context that ends after patience, or with the test.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

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
