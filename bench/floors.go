package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/load"
)

// floors says what the parts cost of which locks are made.
var floors = scenario{
	name:     "floors",
	question: "How often can one do in a second what no lock can do without: a command, a script, the same by another goroutine, Holdfast's two scripts of a pair, a script among others in a pipeline, a sync.Mutex and a channel?",
	rows: []row{
		{name: "goroutines=1", n: 1},
		{name: "goroutines=16", n: 16},
	},
	libraries: []contender.Library{
		{Name: "ping", Role: contender.Bare}, {Name: "evalsha", Role: contender.Bare}, {Name: "evalsha-by-goroutine", Role: contender.Bare},
		{Name: "pair-of-scripts", Role: contender.Bare}, {Name: "evalsha-pipelined", Role: contender.Bare},
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
		op, batch, err := floorOp(ctx, t.library.Name, client, t.n)
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

// floorOp returns what n goroutines repeat, and how many operations that is.
func floorOp(ctx context.Context, name string, client *redis.Client, n int) (op func() error, batch int, err error) {
	sha, err := nothing.Load(ctx, client).Result()
	if err != nil {
		return nil, 0, err
	}
	var mu sync.Mutex
	turn := make(chan struct{}, 1)
	count := 0
	switch name {
	case "ping":
		return func() error { return client.Ping(ctx).Err() }, 1, nil
	case "evalsha":
		return func() error { return client.EvalSha(ctx, sha, []string{"key"}).Err() }, 1, nil
	case "evalsha-by-goroutine": // as a library does whose callers never stand inside the client
		calls := make(chan chan error)
		for range n {
			go func() {
				for done := range calls {
					done <- client.EvalSha(ctx, sha, []string{"key"}).Err()
				}
			}()
		}
		context.AfterFunc(ctx, func() { close(calls) })
		idle := make(chan chan error, n)
		for range n {
			idle <- make(chan error, 1)
		}
		return func() error {
			done := <-idle
			defer func() { idle <- done }()
			calls <- done
			return <-done
		}, 1, nil
	case "pair-of-scripts":
		idle := make(chan pairOfScripts, n)
		for i := range n {
			pair, err := pairOf(ctx, client, fmt.Sprint("floor:", i))
			if err != nil {
				return nil, 0, err
			}
			idle <- pair
		}
		return func() error {
			pair := <-idle
			defer func() { idle <- pair }()
			return errors.Join(client.Do(ctx, pair[0]...).Err(), client.Do(ctx, pair[1]...).Err())
		}, 1, nil
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
				count++
				mu.Unlock()
			}
			return nil
		}, local, nil
	case "channel":
		return func() error {
			for range local {
				turn <- struct{}{}
				count++
				<-turn
			}
			return nil
		}, local, nil
	}
	return nil, 0, fmt.Errorf("no floor has the name %q", name)
}

// pairOfScripts is what Holdfast sends for a Lock and an Unlock.
type pairOfScripts [2][]any

// pairOf listens to a Lock and an Unlock of a free lock, the second ones: the first send the scripts in full.
func pairOf(ctx context.Context, client *redis.Client, name string) (pair pairOfScripts, err error) {
	own := redis.NewClient(client.Options())
	defer own.Close()
	heard := new(listener)
	own.AddHook(heard)
	m, err := holdfast.New(own)
	if err != nil {
		return pair, err
	}
	defer func() { err = errors.Join(err, m.Close(ctx)) }()
	for range 2 {
		heard.commands = nil
		lease, err := m.Mutex(name).Lock(ctx)
		if err == nil {
			err = lease.Unlock(ctx)
		}
		if err != nil {
			return pair, err
		}
	}
	if len(heard.commands) != len(pair) {
		return pair, fmt.Errorf("a pair has sent %d commands", len(heard.commands))
	}
	return pairOfScripts(heard.commands), nil
}

// listener is a hook that keeps the EVALSHAs of pipelines.
type listener struct{ commands [][]any }

func (l *listener) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (l *listener) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (l *listener) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, c := range cmds {
			if c.Name() == "evalsha" {
				l.commands = append(l.commands, slices.Clone(c.Args()))
			}
		}
		return next(ctx, cmds)
	}
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
		lat     load.Histogram
		callers errgroup.Group
		cpu     = load.CPUTime()
		begun   = time.Now()
	)
	for range t.n {
		callers.Go(func() error {
			for done := time.Duration(0); done < t.window; {
				from := time.Since(begun)
				if err := op(); err != nil {
					return err
				}
				done = time.Since(begun)
				lat.Record(done - from)
			}
			return nil
		})
	}
	if err := callers.Wait(); err != nil {
		return nil, err
	}
	elapsed := time.Since(begun)
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
