package holdfastasynq_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast"
	holdfastasynq "github.com/holdfast-go/holdfast/contrib/asynq"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// startWorker starts a server of asynq with the functions that README shows, but for the pause.
func startWorker(r asynq.RedisClientOpt, concurrency int, h asynq.Handler) (*asynq.Server, error) {
	srv := asynq.NewServer(r, asynq.Config{
		Concurrency: concurrency,
		LogLevel:    asynq.FatalLevel,
		IsFailure:   func(err error) bool { return !errors.Is(err, holdfastasynq.ErrNotRun) },
		RetryDelayFunc: func(n int, err error, t *asynq.Task) time.Duration {
			if errors.Is(err, holdfastasynq.ErrNotRun) {
				return 10 * time.Millisecond
			}
			return asynq.DefaultRetryDelayFunc(n, err, t)
		},
		ShutdownTimeout:          time.Millisecond,
		DelayedTaskCheckInterval: 10 * time.Millisecond,
	})
	return srv, srv.Start(h)
}

// work starts a worker of another process, for one task at a time.
func (w *world) work(handler func(context.Context) error) {
	w.t.Helper()
	limit := holdfastasynq.Limit(w.process().Semaphore("limit", 1))
	srv, err := startWorker(w.redis(), 1, limit(asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error { return handler(ctx) })))
	redistest.Must(w.t, err)
	w.t.Cleanup(srv.Shutdown)
}

func (w *world) enqueue(n int, opts ...asynq.Option) (ids []string) {
	w.t.Helper()
	client := asynq.NewClient(w.redis())
	defer client.Close()
	for i := range n {
		info, err := client.Enqueue(asynq.NewTask("work", fmt.Append(nil, i)), append(opts, asynq.Retention(time.Hour))...)
		redistest.Must(w.t, err)
		ids = append(ids, info.ID)
	}
	return ids
}

func (w *world) await(id string, state asynq.TaskState) *asynq.TaskInfo {
	w.t.Helper()
	var info *asynq.TaskInfo
	redistest.Eventually(w.t, redistest.Patience, "a task is "+state.String(), func() (is bool) {
		var err error
		info, err = w.inspector.GetTaskInfo("default", id)
		redistest.Must(w.t, err)
		return info.State == state
	})
	return info
}

// Tasks of two workers share a limit. Those that were refused are run, and no try of theirs is counted.
func TestLimit_OverAllWorkers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var running, most atomic.Int32
	refused := make(chan struct{})
	refuse := sync.OnceFunc(func() { close(refused) })
	for range 2 {
		limited := holdfastasynq.Limit(w.process().Semaphore("limit", 2))(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
			for n, old := running.Add(1), most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			defer running.Add(-1)
			<-refused // so both permits have been in use
			return nil
		}))
		srv, err := startWorker(w.redis(), 4, asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
			err := limited.ProcessTask(ctx, task)
			if errors.Is(err, holdfastasynq.ErrNotRun) && errors.Is(err, holdfast.ErrNotAcquired) {
				refuse()
			}
			return err
		}))
		redistest.Must(t, err)
		t.Cleanup(srv.Shutdown)
	}
	for _, id := range w.enqueue(10) {
		redistest.Want(t, w.await(id, asynq.TaskStateCompleted).Retried, 0, "%d tries were counted, want %d")
	}
	redistest.WantMost(t, most.Load(), 2, "%d tasks ran at a time, want %d at most")
	w.locks.AwaitNone(t, "{limit}:timeout")
}

// asynq archives a task without tries left, whatever IsFailure says.
func TestLimit_LastTryWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	permit, err := w.process().Semaphore("limit", 1).Acquire(t.Context(), 1)
	redistest.Must(t, err)
	w.work(func(context.Context) error { return nil })
	id := w.enqueue(1, asynq.MaxRetry(0))[0]
	locktest.AwaitWaiters(t, w.process(), "limit", 1)
	w.await(id, asynq.TaskStateActive)
	redistest.Must(t, permit.Unlock(t.Context()))
	w.await(id, asynq.TaskStateCompleted)
}

func TestLimit_RedisAwayAtTheStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work(func(context.Context) error { return nil })
	w.locks.Kill()
	id := w.enqueue(1)[0]
	redistest.Eventually(t, redistest.Patience, "the task was refused", func() bool {
		info, err := w.inspector.GetTaskInfo("default", id)
		redistest.Must(t, err)
		return info.LastErr != ""
	})
	w.locks.Restart()
	redistest.Want(t, w.await(id, asynq.TaskStateCompleted).Retried, 0, "%d tries were counted, want %d")
}

// The handler ends by its context if the permit is lost, and its error says so.
func TestLimit_LostPermit(t *testing.T) {
	for reason, lose := range map[string]func(w *world){
		"deadline": func(w *world) { w.locks.Kill() }, // Redis away in the middle
		"deleted":  func(w *world) { locktest.MustForceUnlock(w.t, w.process(), "limit") },
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			causes := make(chan error, 1)
			w.work(func(ctx context.Context) error {
				lose(w)
				<-ctx.Done()
				causes <- context.Cause(ctx)
				return errors.New("half done")
			})
			id := w.enqueue(1, asynq.MaxRetry(0))[0]
			locktest.WantErr(t, redistest.Next(t, causes, "the handler's context does not end"), holdfast.ErrLeaseLost, nil)
			want := "half done\nholdfast: lease lost: \"limit\": " + reason
			redistest.Want(t, w.await(id, asynq.TaskStateArchived).LastErr, want, "the task's error is %q, want %q")
		})
	}
}

// A task that has succeeded does not run again, whatever becomes of its permit.
func TestLimit_RedisAwayAtTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work(func(context.Context) error {
		w.locks.Kill()
		return nil
	})
	w.await(w.enqueue(1)[0], asynq.TaskStateCompleted)
}

func TestLimit_Panic(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work(func(context.Context) error { panic("the handler's") })
	w.await(w.enqueue(1, asynq.MaxRetry(0))[0], asynq.TaskStateArchived)
	w.locks.AwaitNone(t, "{limit}:timeout")
}

// The permit of a process that dies comes back when its lease ends.
func TestLimit_KilledProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	killed := w.start("worker")
	w.enqueue(1)
	killed.Expect(t, "run")
	w.work(func(context.Context) error { return nil })
	id := w.enqueue(1)[0]
	w.await(id, asynq.TaskStateRetry)
	killed.Kill()
	w.await(id, asynq.TaskStateCompleted)
}
