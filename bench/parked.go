package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/load"
	"github.com/holdfast-go/holdfast/bench/internal/report"
)

// parked asks what waiting costs while nothing happens. Libraries that poll take no
// part: ten thousand of their waiters saturate a core and measure nothing else.
var parked = scenario{
	name:      "parked",
	question:  "What do 1,000 and 10,000 goroutines cost that wait for one lock while another client holds it?",
	rows:      counted("waiters", 1000, 10_000),
	libraries: contender.Pick(contender.Ours, "rueidislock", "r8-pubsub", "redisson"),
	headline:  unitPerSecond,
	smaller:   true,
	shown:     []string{unitPerSecond, unitHeap, unitStack, unitRoutines},
	once:      true,
	measure: func(ctx context.Context, t trial) (metrics, error) {
		if t.library.Open == nil {
			return t.parkedElsewhere(ctx)
		}
		return t.park(ctx)
	},
}

const unitPerSecond = report.PerSecond // of all clients together

var errParkedGrant = errors.New("the lock was granted while another client held it")

// park has one client hold a lock, starts waiters on another, watches them and lets
// them go.
func (t trial) park(ctx context.Context) (metrics, error) {
	c, u, err := t.open(ctx, "parked", holdfast.DefaultLease)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	holder, err := t.library.Open(t.server.Address(), holdfast.DefaultLease)
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
	load.GrowGoroutines(t.n)
	before := load.FootprintNow()
	results := make(chan error, t.n)
	for range t.n {
		go func() {
			unlock, err := c.Lock(waitCtx, "parked")
			if err == nil {
				err = errors.Join(errParkedGrant, unlock(context.WithoutCancel(ctx)))
			}
			results <- err
		}()
	}
	settle, watch := t.parkedTimes()
	time.Sleep(settle)
	after := load.FootprintNow()

	if err := u.Restart(ctx); err != nil {
		return nil, err
	}
	begun := time.Now()
	time.Sleep(watch)
	elapsed := time.Since(begun)
	sent, err := u.SoFar(ctx)
	if err != nil {
		return nil, err
	}

	cancel()
	for range t.n {
		if err := <-results; !errors.Is(err, context.Canceled) {
			return nil, fmt.Errorf("a waiter ended with: %w", err)
		}
	}
	if err := unlock(ctx); err != nil {
		return nil, err
	}
	g := before.Until(after)
	g.Goroutines -= float64(t.n) // which are the callers' own
	m := growthPer(g, t.n)
	m[unitPerSecond] = float64(sent.Commands) / elapsed.Seconds()
	return m, nil
}

// parkedTimes are how long the first requests of all waiters may take, and for how
// long they are watched: longer than the lease, since some ask again when the TTL that they have
// been told is over.
func (t trial) parkedTimes() (settle, watch time.Duration) {
	if t.brief() {
		return 500 * time.Millisecond, time.Second
	}
	return 2 * time.Second, holdfast.DefaultLease + 5*time.Second
}

// parkedElsewhere has one process hold the lock and another wait for it.
func (t trial) parkedElsewhere(ctx context.Context) (metrics, error) {
	jobs := []load.Job{{Process: 1, Callers: 1, Forever: true}, {Process: 2, Callers: t.n, Forever: true}}
	_, watch := t.parkedTimes()
	s, err := t.fleet(jobs).Standstill(ctx, load.Quiet(t.brief()), watch)
	if err != nil {
		return nil, err
	}
	m := stillPer(s, t.n)
	m[unitPerSecond] = float64(s.Sent.Commands) / watch.Seconds()
	return m, nil
}
