package holdfastgocron_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/holdfast-go/holdfast"
	holdfastgocron "github.com/holdfast-go/holdfast/contrib/gocron"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func newElector(t *testing.T, ctx context.Context, srv *redistest.Server, value string) *holdfastgocron.Elector {
	t.Helper()
	el := holdfastgocron.NewElector(ctx, locksOn(t, srv).Election("jobs"), value)
	t.Cleanup(func() { el.Close() })
	return el
}

func awaitLeader(t *testing.T, el *holdfastgocron.Elector) {
	t.Helper()
	redistest.Eventually(t, redistest.Patience, "this replica leads", func() bool { return el.IsLeader(t.Context()) == nil })
}

func doesNotLead(t *testing.T, el *holdfastgocron.Elector) {
	t.Helper()
	locktest.WantErr(t, el.IsLeader(t.Context()), holdfastgocron.ErrNotLeader, nil)
}

// Jobs run where the leader is. Close and the end of the context hand the lead on at once.
func TestElector_RunsJobsInTheLeader(t *testing.T) {
	srv := redistest.Start(t)
	a := newElector(t, t.Context(), srv, "a")
	awaitLeader(t, a)
	ctx, cancel := context.WithCancel(t.Context())
	b := newElector(t, ctx, srv, "b")
	ra, rb := startReplica(t, gocron.WithDistributedElector(a)), startReplica(t, gocron.WithDistributedElector(b))

	ra.begin()()
	redistest.Must(t, rb.job.RunNow())
	redistest.Must(t, rb.scheduler.StopJobs()) // waits for a run, which would hang
	rb.scheduler.Start()
	doesNotLead(t, b)
	leader, err := locksOn(t, srv).Election("jobs").Leader(t.Context())
	redistest.Must(t, err)
	redistest.Want(t, leader.Value, "a", "the leader is %q, want %q")

	redistest.Must(t, a.Close())
	redistest.Must(t, a.Close())
	doesNotLead(t, a)
	awaitLeader(t, b)
	rb.begin()()

	cancel()
	redistest.Must(t, b.Close()) // waits
	doesNotLead(t, b)
	srv.AwaitNone(t, "jobs")
}

func TestElector_RedisAway(t *testing.T) {
	srv := redistest.Start(t)
	srv.Kill()
	a := newElector(t, t.Context(), srv, "a")
	doesNotLead(t, a) // at the start
	srv.Restart()
	awaitLeader(t, a)

	srv.Kill() // in the middle
	redistest.Eventually(t, redistest.Patience, "the term is over", func() bool { return a.IsLeader(t.Context()) != nil })
	srv.Restart()
	awaitLeader(t, a)

	srv.Kill() // at the end
	locktest.WantErr(t, a.Close(), holdfast.ErrNotReleased, nil)
	doesNotLead(t, a)
	srv.Restart()
	awaitLeader(t, newElector(t, t.Context(), srv, "b"))
}

func TestElector_LostLease(t *testing.T) {
	srv := redistest.Start(t)
	a := newElector(t, t.Context(), srv, "a")
	awaitLeader(t, a)
	b := newElector(t, t.Context(), srv, "b")
	locks := locksOn(t, srv)
	locktest.AwaitWaiters(t, locks, "jobs", 1)
	locktest.MustForceUnlock(t, locks, "jobs")
	awaitLeader(t, b)
	redistest.Must(t, b.Close())
	awaitLeader(t, a) // it campaigns again
}

// A campaign that fails says why, and is repeated.
func TestElector_FailedCampaign(t *testing.T) {
	srv := redistest.Start(t)
	redistest.Must(t, srv.Admin().Set(t.Context(), "jobs", "a string", 0).Err())
	a := newElector(t, t.Context(), srv, "a")
	redistest.Eventually(t, redistest.Patience, "IsLeader says why", func() bool { return errors.Is(a.IsLeader(t.Context()), holdfast.ErrWrongKind) })
	doesNotLead(t, a)
	redistest.Must(t, srv.Admin().Del(t.Context(), "jobs").Err())
	awaitLeader(t, a)
}

func TestElector_KilledProcess(t *testing.T) {
	srv := redistest.Start(t, redistest.WithoutPassword())
	killed := redistest.StartProcess(t, "elector", srv.Addr())
	killed.Expect(t, "run")
	a := newElector(t, t.Context(), srv, "a")
	doesNotLead(t, a)
	dead := time.Now()
	killed.Kill()
	awaitLeader(t, a)
	t.Logf("leads %v after the leader was killed", time.Since(dead))
}
