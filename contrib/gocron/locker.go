// Package holdfastgocron runs the jobs of gocron (github.com/go-co-op/gocron/v2) once, however many replicas of a program
// schedule them: by a lock for each run, or by an elected leader.
package holdfastgocron

import (
	"context"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/holdfast-go/holdfast"
)

// DefaultHold is how long a job's lock stays taken if the options of [NewLocker] do not say it.
const DefaultHold = 500 * time.Millisecond

// NewLocker returns a locker for [gocron.WithDistributedLocker] and [gocron.WithDistributedJobLocker]. The lock of a job is the
// [holdfast.Mutex] of the job's name. It is renewed while the job runs.
//
// Lock makes one attempt. If it fails, gocron does not run the job in this replica at this tick, and gives the error to
// [gocron.AfterLockError]. The error is
//
//   - [holdfast.ErrNotAcquired] if another replica runs the job, or has run it at this tick.
//   - [holdfast.ErrUnavailable] if Redis did not answer, or refused to act: the job may run nowhere.
//   - [holdfast.ErrWrongKind] if the job's name is a key of something else, such as a lock of gocron-redis-lock.
//   - what [holdfast.Mutex.TryLock] returns for an invalid name or option, or after Manager.Close.
//
// The lock stays taken for [DefaultHold] after its grant, even if the job ends sooner, because the clocks of other replicas are
// late. Half the interval of the job is best: holdfast.WithHoldAtLeast(30*time.Second) for a job that runs each minute.
func NewLocker(m *holdfast.Manager, opts ...holdfast.LockOption) gocron.Locker {
	return locker{m, append([]holdfast.LockOption{holdfast.WithHoldAtLeast(DefaultHold)}, opts...)}
}

type locker struct {
	m    *holdfast.Manager
	opts []holdfast.LockOption
}

func (l locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	lease, err := l.m.Mutex(job, l.opts...).TryLock(ctx)
	if err != nil {
		return nil, err // a nil *Lease would be a gocron.Lock that is not nil
	}
	return lease, nil
}
