package holdfastasynq_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	holdfastasynq "github.com/holdfast-go/holdfast/contrib/asynq"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // the tests wait for ticks and for leases that end
	os.Exit(redistest.Main(m, map[string]func([]string){
		"scheduler": func(args []string) {
			err := holdfastasynq.RunScheduler(context.Background(), connect(args[0]).Election("scheduler"), "killed", func() (*asynq.Scheduler, error) {
				return newScheduler(args[0], "", "killed")
			})
			panic(err)
		},
		"worker": func(args []string) {
			limit := holdfastasynq.Limit(connect(args[0]).Semaphore("limit", 1))
			_, err := startWorker(asynq.RedisClientOpt{Addr: args[0]}, 1, limit(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
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

func connect(addr string) *holdfast.Manager {
	locks, err := holdfast.New(redis.NewClient(&redis.Options{Addr: addr}), holdfast.WithLease(time.Second))
	if err != nil {
		panic(err)
	}
	return locks
}

// world has a Redis for locks and another one for asynq, so that asynq goes on when the locks' Redis is away.
type world struct {
	t            *testing.T
	locks, tasks *redistest.Server
	inspector    *asynq.Inspector
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, locks: redistest.Start(t), tasks: redistest.Start(t)}
	w.inspector = asynq.NewInspector(w.redis())
	t.Cleanup(func() { w.inspector.Close() })
	return w
}

func (w *world) redis() asynq.RedisClientOpt {
	return asynq.RedisClientOpt{Addr: w.tasks.Addr(), Password: w.tasks.Password()}
}

// process returns the manager of another process.
func (w *world) process() *holdfast.Manager {
	w.t.Helper()
	m, err := holdfast.New(w.locks.Client(w.t), holdfast.WithLease(time.Second))
	redistest.Must(w.t, err)
	w.t.Cleanup(func() { m.Close(context.Background()) })
	return m
}

func (w *world) forceUnlock(name string) {
	w.t.Helper()
	freed, err := w.process().ForceUnlock(w.t.Context(), name)
	if err != nil || !freed {
		w.t.Fatal(freed, err)
	}
}

func (w *world) awaitFree(key string) {
	w.t.Helper()
	redistest.Eventually(w.t, redistest.Patience, key+" is free", func() bool { return w.locks.Admin().Exists(w.t.Context(), key).Val() == 0 })
}

// wantErr fails if err is not want.
func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
	}
}
