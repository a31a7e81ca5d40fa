package holdfastasynq

import (
	"context"
	"errors"
	"fmt"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast"
)

// ErrNotRun is the error of a task that [Limit] refuses. It wraps the reason, such as [holdfast.ErrNotAcquired] if no permit was
// available, and [holdfast.ErrUnavailable] if Redis did not answer.
var ErrNotRun = errors.New("holdfastasynq: the task was not run")

// Limit returns a middleware that runs a task with a permit of s. If none is available, the task is refused: asynq runs it again later,
// and the worker can run another task meanwhile. Use one semaphore for each limit.
//
// A refused task has the error [ErrNotRun]. asynq.Config must say that this is no failure, or asynq counts it as a try of the task:
//
//	IsFailure: func(err error) bool { return !errors.Is(err, holdfastasynq.ErrNotRun) },
//	RetryDelayFunc: func(n int, err error, t *asynq.Task) time.Duration {
//		if errors.Is(err, holdfastasynq.ErrNotRun) {
//			return 10 * time.Second
//		}
//		return asynq.DefaultRetryDelayFunc(n, err, t)
//	},
//
// A task on its last try, such as each task with asynq.MaxRetry(0), waits in its worker for a permit until its own timeout: asynq archives
// a task without tries left, whatever IsFailure says.
//
// The permit is renewed while the handler runs, however long that takes, and is released when the handler returns or panics. If the permit
// is lost before that, the handler's context is cancelled, [context.Cause] says why, and [holdfast.ErrLeaseLost] is joined to the error
// that the handler returns. A handler that returns nil has succeeded, even if its permit was lost.
func Limit(s *holdfast.Semaphore) asynq.MiddlewareFunc {
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) (err error) {
			acquire := s.TryAcquire
			if isLastTry(ctx) {
				acquire = s.Acquire
			}
			permit, err := acquire(ctx, 1)
			if err != nil {
				return fmt.Errorf("%w: %w", ErrNotRun, err)
			}
			defer func() {
				withLoss := err
				permit.UnlockInto(ctx, &withLoss)
				if err != nil { // else the task is done, and must not run again
					err = withLoss
				}
			}()
			return next.ProcessTask(permit.Context(ctx), task)
		})
	}
}

func isLastTry(ctx context.Context) bool {
	tries, ok := asynq.GetRetryCount(ctx)
	most, has := asynq.GetMaxRetry(ctx)
	return ok && has && tries >= most
}
