package holdfastasynq_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast"
	holdfastasynq "github.com/holdfast-go/holdfast/contrib/asynq"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

const tick = "@every 1s" // asynq knows nothing shorter

// newScheduler returns one that enqueues a task in the queue of that name at each tick.
func newScheduler(r asynq.RedisClientOpt, queue string) (*asynq.Scheduler, error) {
	s := asynq.NewScheduler(r, &asynq.SchedulerOpts{LogLevel: asynq.FatalLevel})
	_, err := s.Register(tick, asynq.NewTask("tick", nil), asynq.Queue(queue))
	return s, err
}

// replica is a process that runs a scheduler when it leads.
type replica struct {
	w        *world
	election *holdfast.Election
	stop     context.CancelFunc
	stopped  <-chan error // what the run returned
}

func (w *world) run(run func(context.Context, *holdfast.Election) error) *replica {
	ctx, stop := context.WithCancel(w.t.Context())
	e := w.process().Election("scheduler")
	r := &replica{w, e, stop, redistest.Begin(func() error { return run(ctx, e) })}
	w.t.Cleanup(stop)
	return r
}

func (w *world) schedule(queue string) *replica {
	return w.run(func(ctx context.Context, e *holdfast.Election) error {
		return holdfastasynq.RunScheduler(ctx, e, queue, func() (*asynq.Scheduler, error) {
			return newScheduler(w.redis(), queue)
		})
	})
}

// end stops the replica, and returns what its run returned.
func (r *replica) end() error {
	r.w.t.Helper()
	r.stop()
	return redistest.Next(r.w.t, r.stopped, "the run does not end")
}

// ticks returns how many there have been in a queue.
func (w *world) ticks(queue string) int {
	w.t.Helper()
	tasks, err := w.inspector.ListPendingTasks(queue, asynq.PageSize(1000))
	if err != nil && !errors.Is(err, asynq.ErrQueueNotFound) {
		w.t.Fatal(err)
	}
	return len(tasks)
}

// awaitTicks waits for two more in a queue.
func (w *world) awaitTicks(queue string) {
	w.t.Helper()
	from := w.ticks(queue)
	redistest.Eventually(w.t, redistest.Patience, "ticks of "+queue, func() bool { return w.ticks(queue) >= from+2 })
}

// doesNotTick waits for two ticks of another scheduler, while there is none in queue.
func (w *world) doesNotTick(queue, other string) {
	w.t.Helper()
	from := w.ticks(queue)
	w.awaitTicks(other)
	redistest.Want(w.t, w.ticks(queue), from, "ticks of "+queue+", which does not lead: %d, want %d")
}

// clock starts a scheduler that no election has chosen.
func (w *world) clock() (queue string) {
	w.t.Helper()
	s, err := newScheduler(w.redis(), "clock")
	redistest.Must(w.t, err)
	redistest.Must(w.t, s.Start())
	w.t.Cleanup(s.Shutdown)
	return "clock"
}

func TestRunScheduler_OneOfMany(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.schedule("a")
	w.awaitTicks("a")
	b := w.schedule("b")
	w.doesNotTick("b", "a")
	leader, err := w.process().Election("scheduler").Leader(t.Context())
	redistest.Must(t, err)
	redistest.Want(t, leader.Value, "a", "the leader is %q, want %q")

	redistest.Must(t, a.end())
	w.doesNotTick("a", "b")
	c := w.schedule("c")
	w.doesNotTick("c", "b")
	redistest.Must(t, c.end()) // without having led
	redistest.Must(t, b.end())
	w.locks.AwaitNone(t, "scheduler")
}

func TestRunScheduler_RedisAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clock := w.clock()
	w.locks.Kill() // at the start
	a := w.schedule("a")
	w.doesNotTick("a", clock)
	w.locks.Restart()
	w.awaitTicks("a")

	w.locks.Kill() // in the middle: asynq's Redis answers
	redistest.Eventually(t, redistest.Patience, "the term is over", func() bool { return a.election.Term() == nil })
	w.doesNotTick("a", clock)
	w.locks.Restart()
	w.awaitTicks("a") // by a new scheduler

	w.locks.Kill() // at the end
	locktest.WantErr(t, a.end(), holdfast.ErrNotReleased, nil)
	w.doesNotTick("a", clock)
	w.locks.Restart()
	w.schedule("b")
	w.awaitTicks("b")
}

func TestRunScheduler_LostLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.schedule("a")
	w.awaitTicks("a")
	b := w.schedule("b")
	locktest.AwaitWaiters(t, w.process(), "scheduler", 1)
	locktest.MustForceUnlock(t, w.process(), "scheduler")
	w.awaitTicks("b")
	w.doesNotTick("a", "b")
	redistest.Must(t, b.end())
	w.awaitTicks("a") // it campaigns again
	redistest.Must(t, a.end())
}

func TestRunScheduler_KilledProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	killed := w.start("scheduler")
	w.awaitTicks("killed")
	w.schedule("a")
	w.doesNotTick("a", "killed")
	killed.Kill()
	w.awaitTicks("a")
	w.doesNotTick("killed", "a")
}

func TestRunScheduler_FactoryFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bad := errors.New("no configuration")
	a := w.run(func(ctx context.Context, e *holdfast.Election) error {
		return holdfastasynq.RunScheduler(ctx, e, "a", func() (*asynq.Scheduler, error) { return nil, bad })
	})
	locktest.WantErr(t, redistest.Next(t, a.stopped, "the error does not end the run"), bad, nil)
	w.schedule("b")
	w.awaitTicks("b") // a has resigned
}

// provider has a task for each tick. A call of GetConfigs blocks while hangs says so.
type provider struct {
	queue string
	calls atomic.Int32
	hangs func(call int32) bool
}

func (p *provider) GetConfigs() ([]*asynq.PeriodicTaskConfig, error) {
	if p.hangs(p.calls.Add(1)) {
		select {}
	}
	return []*asynq.PeriodicTaskConfig{{Cronspec: tick, Task: asynq.NewTask("tick", nil), Opts: []asynq.Option{asynq.Queue(p.queue)}}}, nil
}

func (w *world) manage(p *provider) *replica {
	return w.run(func(ctx context.Context, e *holdfast.Election) error {
		return holdfastasynq.RunPeriodicTaskManager(ctx, e, p.queue, asynq.PeriodicTaskManagerOpts{
			PeriodicTaskConfigProvider: p,
			RedisConnOpt:               w.redis(),
			SchedulerOpts:              &asynq.SchedulerOpts{LogLevel: asynq.FatalLevel},
			SyncInterval:               100 * time.Millisecond,
		})
	})
}

// The manager stops although a call of GetConfigs hangs: at the first call of a term, or at a later one.
func TestRunPeriodicTaskManager_GetConfigsHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.manage(&provider{queue: "a", hangs: func(call int32) bool { return call >= 2 }})
	w.awaitTicks("a")
	b := &provider{queue: "b", hangs: func(call int32) bool { return call == 1 }}
	w.manage(b)
	w.doesNotTick("b", "a")
	redistest.Must(t, a.end())
	redistest.Eventually(t, redistest.Patience, "b leads", func() bool { return b.calls.Load() == 1 })
	locktest.MustForceUnlock(t, w.process(), "scheduler")
	w.awaitTicks("b") // in its next term
	w.doesNotTick("a", "b")
}

func TestRunPeriodicTaskManager_BadOptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	err := holdfastasynq.RunPeriodicTaskManager(t.Context(), w.process().Election("scheduler"), "a", asynq.PeriodicTaskManagerOpts{})
	redistest.Want(t, err != nil, true, "a manager without GetConfigs runs")
	w.locks.AwaitNone(t, "scheduler")
}
