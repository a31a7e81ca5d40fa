package holdfastasynq_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast"
	holdfastasynq "github.com/holdfast-go/holdfast/contrib/asynq"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // the tests wait for ticks and for leases that end
	os.Exit(redistest.Main(m, map[string]func([]string){
		"scheduler": func(args []string) {
			err := holdfastasynq.RunScheduler(context.Background(), locktest.ManagerOfRole(args[0]).Election("scheduler"), "killed", func() (*asynq.Scheduler, error) {
				return newScheduler(redisAt(args[1]), "killed")
			})
			panic(err)
		},
		"worker": func(args []string) {
			limit := holdfastasynq.Limit(locktest.ManagerOfRole(args[0]).Semaphore("limit", 1))
			_, err := startWorker(redisAt(args[1]), 1, limit(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
				fmt.Println("run")
				select {}
			})))
			if err != nil {
				panic(err)
			}
			bufio.NewScanner(os.Stdin).Scan()
		},
	}))
}

// world has a Redis for locks and another one for asynq, so that asynq goes on when the locks' Redis is away.
type world struct {
	t            *testing.T
	locks, tasks *redistest.Server
	inspector    *asynq.Inspector
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, locks: redistest.Start(t, redistest.WithoutPassword()), tasks: redistest.Start(t, redistest.WithoutPassword())}
	w.inspector = asynq.NewInspector(w.redis())
	t.Cleanup(func() { w.inspector.Close() })
	return w
}

func redisAt(addr string) asynq.RedisClientOpt { return asynq.RedisClientOpt{Addr: addr} }

func (w *world) redis() asynq.RedisClientOpt { return redisAt(w.tasks.Addr()) }

// start starts a process that plays a role.
func (w *world) start(role string) *redistest.Process {
	w.t.Helper()
	return redistest.StartProcess(w.t, role, w.locks.Addr(), w.tasks.Addr())
}

// process returns the manager of another process.
func (w *world) process() *holdfast.Manager {
	w.t.Helper()
	return locktest.ManagerAsIs(w.t, w.locks.Client(w.t), holdfast.WithLease(time.Second))
}
