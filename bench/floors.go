package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/load"
)

// floors says what the parts cost of which locks are made.
var floors = scenario{
	name:     "floors",
	question: "How often can one do in a second what no lock can do without: a command, a script, a script among others in a pipeline, a sync.Mutex and a channel?",
	rows: []row{
		{name: "goroutines=1", n: 1},
		{name: "goroutines=16", n: 16},
	},
	libraries: []contender.Library{
		{Name: "ping", Role: contender.Bare}, {Name: "evalsha", Role: contender.Bare}, {Name: "evalsha-pipelined", Role: contender.Bare},
		{Name: "sync.Mutex", Role: contender.Bare}, {Name: "channel", Role: contender.Bare},
	},
	headline: unitOps,
	shown:    []string{unitOps, unitP50, unitP99, unitServer, unitClient},
	measure: func(ctx context.Context, t trial) (metrics, error) {
		if err := t.server.Reset(ctx); err != nil {
			return nil, err
		}
		client := redis.NewClient(&redis.Options{Addr: t.server.Address()})
		defer client.Close()
		op, batch, err := floorOp(ctx, t.library.Name, client)
		if err != nil {
			return nil, err
		}
		return t.repeat(ctx, op, batch)
	},
}

const (
	unitOps = "ops/s"
	// pipelined is how many scripts go together: as many as keep a server busy.
	pipelined = 100
	// local is how often what takes nanoseconds is done for each reading of the clock.
	local = 1000
)

var nothing = redis.NewScript(`return 1`)

// floorOp returns what is repeated, and how many operations that is.
func floorOp(ctx context.Context, name string, client *redis.Client) (op func() error, batch int, err error) {
	sha, err := nothing.Load(ctx, client).Result()
	if err != nil {
		return nil, 0, err
	}
	var mu sync.Mutex
	turn := make(chan struct{}, 1)
	n := 0
	switch name {
	case "ping":
		return func() error { return client.Ping(ctx).Err() }, 1, nil
	case "evalsha":
		return func() error { return client.EvalSha(ctx, sha, []string{"key"}).Err() }, 1, nil
	case "evalsha-pipelined":
		return func() error {
			p := client.Pipeline()
			for range pipelined {
				p.EvalSha(ctx, sha, []string{"key"})
			}
			_, err := p.Exec(ctx)
			return err
		}, pipelined, nil
	case "sync.Mutex":
		return func() error {
			for range local {
				mu.Lock()
				n++
				mu.Unlock()
			}
			return nil
		}, local, nil
	case "channel":
		return func() error {
			for range local {
				turn <- struct{}{}
				n++
				<-turn
			}
			return nil
		}, local, nil
	}
	return nil, 0, fmt.Errorf("no floor has the name %q", name)
}

// repeat has t.n goroutines repeat op for a window.
func (t trial) repeat(ctx context.Context, op func() error, batch int) (metrics, error) {
	if err := op(); err != nil {
		return nil, err
	}
	u, err := t.usage(ctx)
	if err != nil {
		return nil, err
	}
	var (
		lat   load.Histogram
		wg    sync.WaitGroup
		once  sync.Once
		fault error
		cpu   = load.CPUTime()
		begun = time.Now()
	)
	for range t.n {
		wg.Go(func() {
			for done := time.Duration(0); done < t.window; {
				from := time.Since(begun)
				if err := op(); err != nil {
					once.Do(func() { fault = err })
					return
				}
				done = time.Since(begun)
				lat.Record(done - from)
			}
		})
	}
	wg.Wait()
	elapsed := time.Since(begun)
	if fault != nil {
		return nil, fault
	}
	sent, err := u.SoFar(ctx)
	if err != nil {
		return nil, err
	}
	ops := float64(lat.Count()) * float64(batch)
	m := metrics{
		unitOps:    ops / elapsed.Seconds(),
		unitClient: microseconds(load.CPUTime()-cpu) / ops,
		unitServer: microseconds(sent.CPU) / ops,
	}
	if batch == 1 {
		m.quantiles("", &lat)
	}
	return m, nil
}
