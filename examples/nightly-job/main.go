// Command nightly-job runs one job on three replicas of a service: one replica does it,
// and another takes over where it left off if it dies or gets stuck.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/example"
)

const (
	steps   = 6
	hanging = 5 // the step whose first attempt never returns
	lease   = time.Second
	maxHold = 3 * time.Second // longer than the whole job should take
)

func main() {
	example.Main(example.Scenario{
		Name:   "nightly-job",
		Usage:  "a job on every replica: one runs it, the next takes over if it dies or gets stuck",
		Modes:  map[string]string{"recipe": "guard the job with SET NX PX, a guard that renews it, and compare-and-delete"},
		Direct: direct,
		Roles:  map[string]func(context.Context, *example.Worker) error{"replica": replica},
	})
}

// guard runs fn while nobody else does.
type guard func(ctx context.Context, fn func(ctx context.Context) error) error

// replica tries until the job is done, by whomever.
func replica(ctx context.Context, w *example.Worker) error {
	locks, err := holdfast.New(w.Redis, holdfast.WithLease(lease), holdfast.WithMaxHold(maxHold))
	if err != nil {
		return err
	}
	defer locks.Close(context.WithoutCancel(ctx))

	tonight := locks.Mutex(w.Key("tonight"))
	alone := guard(func(ctx context.Context, fn func(context.Context) error) error {
		return holdfast.Do(ctx, tonight, func(ctx context.Context, _ *holdfast.Lease) error { return fn(ctx) })
	})
	if w.Mode == "recipe" {
		alone = guarded(w.Redis, w.Key("tonight"))
	}
	w.Say("is up")
	for {
		err := alone(ctx, func(ctx context.Context) error { return job(ctx, w) })
		switch {
		case err == nil:
			w.Say("sees that the job is done")
			return nil
		case errors.Is(err, holdfast.ErrMaxHold):
			w.Say("steps down: it held the lock for %v", maxHold) // and stands in line again
		case errors.Is(err, holdfast.ErrLeaseLost):
			w.Say("steps down: it has lost the lock")
		default:
			return err
		}
	}
}

// job does what is left to do. It works under the lease's context, so that it stops when
// the lease ends.
func job(ctx context.Context, w *example.Worker) error {
	done, err := w.Redis.Get(ctx, w.Key("done")).Int()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	for step := done + 1; step <= steps; step++ {
		w.Say("begins step %d", step)
		w.Here(fmt.Sprintf("in step %d", step))
		if err := do(ctx, w, step); err != nil {
			return err
		}
		if err := w.Redis.Set(ctx, w.Key("done"), step, 0).Err(); err != nil {
			return err
		}
		w.Say("has done step %d", step)
	}
	return nil
}

// do is one step. A service that it calls does not answer the first time.
func do(ctx context.Context, w *example.Worker, step int) error {
	if step == hanging {
		first, err := w.Redis.SetNX(ctx, w.Key("hung"), w.Name, 0).Result()
		if err != nil {
			return err
		}
		if first {
			w.Say("waits for a service that will not answer")
			<-ctx.Done()
			return context.Cause(ctx)
		}
	}
	return w.Think(ctx, 100*time.Millisecond)
}

func direct(ctx context.Context, d *example.Director) error {
	d.Say("%d steps, lease %v, at most %v for one replica", steps, lease, maxHold)
	dying := d.StartUntil("in step 3", "replica", "replica-1")
	dying.AwaitStop()
	others := []*example.Process{d.Start("replica", "replica-2"), d.Start("replica", "replica-3")}
	for _, p := range others {
		p.Await("is up")
	}
	dying.Kill() // after a lease somebody takes over, at step 3

	const enough = 3 * (lease + maxHold)
	d.Say("the others have %v to finish the job", enough)
	_, finished := others[0].AwaitFor("sees that the job is done", enough)
	if finished {
		for _, p := range others {
			p.Wait()
		}
	}
	done, err := d.Redis.Get(ctx, d.Key("done")).Int()
	d.Must(err)
	stuck, err := d.Redis.Get(ctx, d.Key("hung")).Result()
	d.Must(err)
	d.Check(done == steps, "%v later the job is still at step %d: %s is stuck and keeps the lock", enough, done+1, stuck)
	return nil
}
