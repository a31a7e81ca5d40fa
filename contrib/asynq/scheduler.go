// Package holdfastasynq has one of many processes schedule the periodic tasks of asynq (github.com/hibiken/asynq), and limits how many
// tasks all workers together run at a time.
package holdfastasynq

import (
	"context"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast"
)

// RunScheduler runs an asynq scheduler while this process leads e, until ctx ends. value is what [holdfast.Election.Leader] says of
// this process, such as the name of its host.
//
// It calls scheduler in each term for a new one, because Shutdown of the last one has closed its connections, and starts it. When the
// term is lost, RunScheduler shuts the scheduler down, campaigns again, and calls scheduler in its next term. At the end of ctx it
// shuts the scheduler down and then resigns, so that the next process leads at once.
//
// The scheduler is shut down a tenth of the lease before another process can lead. No tick begins after that, unless the process was
// paused: the first ticks after a pause can come before the shutdown. What Shutdown cannot stop is a task that is being enqueued: if
// asynq's Redis does not answer, that task can still arrive when another process leads.
//
// RunScheduler returns after Shutdown. It returns
//
//   - nil when ctx has ended.
//   - [holdfast.ErrNotReleased] when ctx has ended and Redis has not confirmed the release: another process leads when the lease has
//     run out.
//   - the error of scheduler, or of Start. This process has resigned, and others can lead.
//   - what [holdfast.Election.Lead] returns otherwise, such as [holdfast.ErrWrongKind] and [holdfast.ErrClosed].
func RunScheduler(ctx context.Context, e *holdfast.Election, value string, scheduler func() (*asynq.Scheduler, error)) error {
	return run(ctx, e, value, func(context.Context) (periodic, error) { return scheduler() })
}

// RunPeriodicTaskManager is [RunScheduler] for a [asynq.PeriodicTaskManager]: it makes one of opts in each term.
//
// The manager does not wait for GetConfigs when the term has ended. So GetConfigs can be called while an earlier call, of a term that is
// over, has not returned.
func RunPeriodicTaskManager(ctx context.Context, e *holdfast.Election, value string, opts asynq.PeriodicTaskManagerOpts) error {
	return run(ctx, e, value, func(term context.Context) (periodic, error) {
		opts := opts
		if opts.PeriodicTaskConfigProvider != nil {
			opts.PeriodicTaskConfigProvider = provider{term, opts.PeriodicTaskConfigProvider}
		}
		return asynq.NewPeriodicTaskManager(opts)
	})
}

// periodic is what both kinds of scheduler have.
type periodic interface {
	Start() error
	Shutdown()
}

func run(ctx context.Context, e *holdfast.Election, value string, begin func(term context.Context) (periodic, error)) error {
	err := e.Lead(ctx, value, func(term context.Context, _ *holdfast.Term) error {
		p, err := begin(term)
		if err != nil {
			return err
		}
		if err := p.Start(); err != nil {
			if term.Err() != nil {
				return nil // the error says that, or does not matter any more
			}
			return err
		}
		<-term.Done()
		p.Shutdown()
		return nil
	})
	if err != nil && err == context.Cause(ctx) {
		return nil
	}
	return err
}

// provider gives up when the term ends: asynq's manager shuts its scheduler down only after GetConfigs has returned.
type provider struct {
	term    context.Context
	configs asynq.PeriodicTaskConfigProvider
}

func (p provider) GetConfigs() ([]*asynq.PeriodicTaskConfig, error) {
	type answer struct {
		configs []*asynq.PeriodicTaskConfig
		err     error
	}
	answered := make(chan answer, 1)
	go func() {
		configs, err := p.configs.GetConfigs()
		answered <- answer{configs, err}
	}()
	select {
	case a := <-answered:
		return a.configs, a.err
	case <-p.term.Done():
		return nil, context.Cause(p.term)
	}
}
