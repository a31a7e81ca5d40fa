package holdfast

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Observe yields who leads now, and then each change of the leader or of its value, until ctx ends. A
// vacancy is a [Leader] with Term 0. Values that follow each other quickly may be skipped, the last one
// never.
//
// Observe hears of a change by a message, and asks Redis then. It also asks at the end of the leader's
// TTL and at each [WithPollInterval]. So it learns of a leader that died when its lock has expired, and
// of a message that was lost at the next poll.
//
// If Redis does not answer, Observe yields the error, as [Election.Leader] returns it, and goes on: it asks
// again after a pause, of a second at most. Only ErrClosed, and an election that no Manager has made, end
// the sequence.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		if err := e.check(ctx, "Observe"); err != nil {
			yield(Leader{}, err)
			return
		}
		o := make(observer, 1)
		subscriber, channel := e.seat.m.engine.Subscriber, wire.LeaderChannel(e.seat.lock.Mapped)
		subscriber.Add(channel, o)
		defer subscriber.Remove(channel, o)
		var last Leader
		pauses := retry.New()
		for begun := false; ; {
			l, err := e.ask(ctx)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				if !yield(Leader{}, err) || errors.Is(engine.FactOf(err), ErrClosed) {
					return
				}
			case !begun || l.Owner != last.Owner || l.Term != last.Term || l.Value != last.Value:
				if !yield(l, nil) {
					return
				}
				last, begun = l, true
			}
			pause := pauses.NextBackOff()
			if err == nil {
				pauses.Reset()
				pause = e.pollAfter(l.TTL)
			}
			if !o.wait(ctx, pause, e.seat.m.engine.Over()) {
				return
			}
		}
	}
}

// pollAfter is how long to wait for a message while the seat is taken for ttl. As for waiters, up to a fifth is taken off, so that
// processes do not ask in step, and the end of a TTL is looked at when it is over.
func (e *Election) pollAfter(ttl time.Duration) time.Duration {
	const past = 2 * time.Millisecond
	eng := e.seat.m.engine
	poll := eng.Poll - time.Duration(eng.Chance(int64(eng.Poll/5+1)))
	if ttl > 0 {
		poll = min(poll, ttl+past)
	}
	return poll
}

// observer has a message when there may be news.
type observer chan struct{}

// wait returns after d, when there may be news, or when over is closed. It reports false if ctx has ended.
func (o observer) wait(ctx context.Context, d time.Duration, over <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-o:
	case <-timer.C:
	case <-over:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

func (o observer) wake() {
	select {
	case o <- struct{}{}:
	default:
	}
}

// The subscriber calls the following.

func (o observer) Heard(string) { o.wake() }

func (o observer) Subscribed() { o.wake() } // what was published before was missed

func (o observer) Relied() bool { return false }

func (o observer) Denied() {} // it polls in any case

func (o observer) Unproven() {} // a lock's waiters send an echo; without one, observers poll
