package holdfastgocron_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast"
	holdfastgocron "github.com/holdfast-go/holdfast/contrib/gocron"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// runsOf returns how often a job of each minute runs in five minutes, in three replicas whose clocks are late.
func runsOf(t *testing.T, late []time.Duration, opts ...holdfast.LockOption) (runs int64) {
	synctest.Test(t, func(t *testing.T) {
		server := holdfasttest.NewServer(t)
		start := time.Now().Add(time.Minute)
		var n atomic.Int64
		for _, late := range late {
			s, err := gocron.NewScheduler(gocron.WithDistributedLocker(holdfastgocron.NewLocker(server.NewManager(), opts...)))
			redistest.Must(t, err)
			defer s.Shutdown()
			_, err = s.NewJob(gocron.DurationJob(time.Minute), gocron.NewTask(func() { n.Add(1) }), gocron.WithName("report"),
				gocron.WithStartAt(gocron.WithStartDateTime(start.Add(late))))
			redistest.Must(t, err)
			s.Start()
		}
		time.Sleep(5*time.Minute + 50*time.Second) // ticks at 1:00 to 5:00
		runs = n.Load()
	})
	return runs
}

func TestLocker_RunsOncePerTick(t *testing.T) {
	late := []time.Duration{0, 10 * time.Second, 29 * time.Second}
	redistest.Want(t, runsOf(t, late, holdfast.WithHoldAtLeast(30*time.Second)), 5, "%d runs of %d ticks")
	redistest.Want(t, runsOf(t, late), 15, "%d runs with the default, which is too short for such clocks: want %d")
	late = []time.Duration{0, 200 * time.Millisecond, 490 * time.Millisecond}
	redistest.Want(t, runsOf(t, late), 5, "%d runs of %d ticks with the default")
}

// replica is a scheduler with one job that runs when the test says so.
type replica struct {
	t         *testing.T
	scheduler gocron.Scheduler
	job       gocron.Job
	runs      chan chan struct{} // the job sends a channel when it begins, and ends when that is closed
	refused   chan error         // what AfterLockError gets
	shutdown  func() error       // may be called again
}

func startReplica(t *testing.T, opts ...gocron.SchedulerOption) *replica {
	t.Helper()
	r := &replica{t: t, runs: make(chan chan struct{}), refused: make(chan error, 1)}
	var err error
	r.scheduler, err = gocron.NewScheduler(opts...)
	redistest.Must(t, err)
	r.shutdown = sync.OnceValue(r.scheduler.Shutdown)
	t.Cleanup(func() { r.shutdown() })
	work := func() {
		end := make(chan struct{})
		r.runs <- end
		<-end
	}
	r.job, err = r.scheduler.NewJob(gocron.DurationJob(time.Hour), gocron.NewTask(work), gocron.WithName("report"),
		gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { r.refused <- err })))
	redistest.Must(t, err)
	r.scheduler.Start()
	return r
}

// begin starts the job, which must run, and returns what ends it.
func (r *replica) begin() (end func()) {
	r.t.Helper()
	redistest.Must(r.t, r.job.RunNow())
	select {
	case run := <-r.runs:
		return func() { close(run) }
	case err := <-r.refused:
		r.t.Fatalf("the job does not run: %v", err)
	case <-time.After(redistest.Patience):
		r.t.Fatal("the job does not run")
	}
	return nil
}

// isRefused starts the job, which must not run, because of want.
func (r *replica) isRefused(want error) {
	r.t.Helper()
	redistest.Must(r.t, r.job.RunNow())
	select {
	case <-r.runs:
		r.t.Fatalf("the job runs, and should be refused: %v", want)
	case err := <-r.refused:
		if !errors.Is(err, want) {
			r.t.Fatalf("refused with %v, want %v", err, want)
		}
	case <-time.After(redistest.Patience):
		r.t.Fatal("neither runs the job nor is it refused")
	}
}

func locksOn(t *testing.T, srv *redistest.Server) *holdfast.Manager {
	t.Helper()
	return locktest.ManagerAsIs(t, srv.Client(t), holdfast.WithLease(time.Second))
}

func lockedReplica(t *testing.T, srv *redistest.Server) *replica {
	t.Helper()
	return startReplica(t, gocron.WithDistributedLocker(holdfastgocron.NewLocker(locksOn(t, srv), holdfast.WithHoldAtLeast(time.Millisecond))))
}

func TestLocker_RedisAwayAtTheStart(t *testing.T) {
	srv := redistest.Start(t)
	a := lockedReplica(t, srv)
	srv.Kill()
	a.isRefused(holdfast.ErrUnavailable)
	srv.Restart()
	a.begin()()
}

func TestLocker_RedisAwayInTheMiddleAndAtTheEnd(t *testing.T) {
	srv := redistest.Start(t)
	a, b := lockedReplica(t, srv), lockedReplica(t, srv)
	end := a.begin()
	b.isRefused(holdfast.ErrNotAcquired)
	srv.Kill()
	b.isRefused(holdfast.ErrUnavailable)
	end()
	srv.Restart()
	srv.AwaitNone(t, "report")
	b.begin()()
}

// The job goes on: gocron has no way to stop it. Another replica may run it meanwhile, and the end of the first run does not free
// the lock of the second.
func TestLocker_LostLease(t *testing.T) {
	srv := redistest.Start(t)
	a, b, c := lockedReplica(t, srv), lockedReplica(t, srv), lockedReplica(t, srv)
	endA := a.begin()
	locktest.MustForceUnlock(t, locksOn(t, srv), "report")
	endB := b.begin()
	endA()
	redistest.Must(t, a.scheduler.StopJobs())
	c.isRefused(holdfast.ErrNotAcquired)
	endB()
	srv.AwaitNone(t, "report")
	c.begin()()
}

// The context of the job has ended when gocron unlocks.
func TestLocker_ShutdownFreesTheLock(t *testing.T) {
	srv := redistest.Start(t)
	a := lockedReplica(t, srv)
	end := a.begin()
	down := redistest.Begin(a.shutdown)
	end()
	redistest.Must(t, redistest.Next(t, down, "Shutdown does not return"))
	srv.AwaitNone(t, "report")
	lockedReplica(t, srv).begin()()
}

// A replica that still has gocron-redis-lock keeps the key as a string.
func TestLocker_KeyOfAnotherLibrary(t *testing.T) {
	srv := redistest.Start(t)
	redistest.Must(t, srv.Admin().Set(t.Context(), "report", "token", time.Minute).Err())
	lockedReplica(t, srv).isRefused(holdfast.ErrWrongKind)
}

func TestLocker_KilledProcess(t *testing.T) {
	srv := redistest.Start(t, redistest.WithoutPassword())
	killed := redistest.StartProcess(t, "locker", srv.Addr())
	killed.Expect(t, "run")
	a := lockedReplica(t, srv)
	a.isRefused(holdfast.ErrNotAcquired)
	killed.Kill()
	srv.AwaitNone(t, "report")
	a.begin()()
}
