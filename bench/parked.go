package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
)

// parked asks what waiting costs while nothing happens. Libraries that poll take no
// part: ten thousand of their waiters saturate a core and measure nothing else.
var parked = scenario{
	name:      "parked",
	question:  "What do 1,000 and 10,000 goroutines cost that wait for one lock while another client holds it?",
	rows:      counted("waiters", 1000, 10_000),
	libraries: pick(ours, "rueidislock", "r8-pubsub", "redisson"),
	headline:  unitPerSecond,
	smaller:   true,
	shown:     []string{unitPerSecond, unitHeap, unitStack, unitRoutines},
	once:      true,
	measure: func(ctx context.Context, t trial) (metrics, error) {
		if t.library.open == nil {
			return t.parkedElsewhere(ctx)
		}
		results := make(chan error, t.n)
		return park(ctx, t, func(ctx context.Context, c contender) waiting {
			for range t.n {
				go func() {
					unlock, err := c.Lock(ctx, "parked")
					if err == nil {
						err = errors.Join(errParkedGrant, unlock(context.WithoutCancel(ctx)))
					}
					results <- err
				}()
			}
			return waiting{callers: t.n, ended: func() error { return <-results }}
		})
	},
}

// parkedAsync asks the same of Holdfast's LockAsync, for which nobody is parked.
var parkedAsync = scenario{
	name:      "parked-async",
	question:  "What do 1,000 and 10,000 calls of LockAsync cost that wait for one lock while another client holds it?",
	rows:      counted("waiters", 1000, 10_000),
	libraries: pick(ours),
	headline:  unitPerSecond,
	smaller:   true,
	shown:     []string{unitPerSecond, unitHeap, unitStack, unitRoutines},
	once:      true,
	measure: func(ctx context.Context, t trial) (metrics, error) {
		results := make([]<-chan holdfast.Result, 0, t.n)
		return park(ctx, t, func(ctx context.Context, c contender) waiting {
			m := c.(*holdfastContender).manager.Mutex("parked")
			for range t.n {
				results = append(results, m.LockAsync(ctx))
			}
			return waiting{ended: func() error {
				r := <-results[0]
				results = results[1:]
				if r.Err == nil {
					return errors.Join(errParkedGrant, r.Lease.Unlock(context.WithoutCancel(ctx)))
				}
				return r.Err
			}}
		})
	},
}

const unitPerSecond = "redis-cmds/s" // of all clients together

// waiting are t.n waiters.
type waiting struct {
	callers int          // goroutines that are the callers' own
	ended   func() error // waits for one of them and returns its error
}

var errParkedGrant = errors.New("the lock was granted while another client held it")

// park has one client hold a lock, starts waiters on another, watches them and lets
// them go.
func park(ctx context.Context, t trial, start func(context.Context, contender) waiting) (metrics, error) {
	c, u, err := t.open(ctx, "parked", lease)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	holder, err := t.library.open(t.server.address, lease)
	if err != nil {
		return nil, err
	}
	defer holder.Close()
	unlock, err := holder.Lock(ctx, "parked")
	if err != nil {
		return nil, err
	}

	waitCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	growGoroutines(t.n)
	before := footprintNow()
	w := start(waitCtx, c)
	settle, watch := t.parkedTimes()
	time.Sleep(settle)
	after := footprintNow()

	if err := u.restart(ctx); err != nil {
		return nil, err
	}
	begun := time.Now()
	time.Sleep(watch)
	elapsed := time.Since(begun)
	sent, err := u.soFar(ctx)
	if err != nil {
		return nil, err
	}

	cancel()
	for range t.n {
		if err := w.ended(); !errors.Is(err, context.Canceled) {
			return nil, fmt.Errorf("a waiter ended with: %w", err)
		}
	}
	if err := unlock(ctx); err != nil {
		return nil, err
	}
	g := before.until(after)
	g.goroutines -= float64(w.callers)
	m := g.per(t.n)
	m[unitPerSecond] = float64(sent.commands) / elapsed.Seconds()
	return m, nil
}

// parkedTimes are how long the first requests of all waiters may take, and for how
// long they are watched, which covers several poll intervals of Holdfast.
func (t trial) parkedTimes() (settle, watch time.Duration) {
	if t.brief() {
		return 500 * time.Millisecond, time.Second
	}
	return 2 * time.Second, 5 * time.Second
}

// parkedElsewhere has one process hold the lock and another wait for it.
func (t trial) parkedElsewhere(ctx context.Context) (metrics, error) {
	jobs := []job{{Process: 1, Callers: 1, Forever: true}, {Process: 2, Callers: t.n, Forever: true}}
	_, watch := t.parkedTimes()
	s, err := t.standstill(ctx, jobs, quiet, watch)
	if err != nil {
		return nil, err
	}
	m := s.per(t.n)
	m[unitPerSecond] = float64(s.sent.commands) / watch.Seconds()
	return m, nil
}
