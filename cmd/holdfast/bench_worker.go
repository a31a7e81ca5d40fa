package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"
)

// benchmark starts processes that lock and unlock.
type benchmark struct {
	urls   string // with spaces between several
	prefix string
	encryption
	name     string
	duration time.Duration
	tell     teller
}

// report is what a worker has done.
type report struct {
	Pairs    uint64        `json:"pairs"`
	Commands uint64        `json:"commands"`
	Elapsed  time.Duration `json:"elapsed"`
	Turns    []turn        `json:"turns,omitempty"` // if it holds each for a time
}

// turn is from a grant to its Unlock. The processes are on one host, so their clocks agree; ns since 1970.
type turn struct {
	Granted  int64 `json:"g"`
	Unlocked int64 `json:"u"`
}

// run has n processes work at the same time. If they hold a lock for a time, it is the same one.
func (b *benchmark) run(ctx context.Context, what string, n int, hold time.Duration) ([]report, error) {
	b.tell.say("%s, for %v", what, b.duration)
	var args [][]string
	for i := range n {
		name := b.name
		if hold == 0 {
			name = fmt.Sprintf("%s:%d", b.name, i)
		}
		args = append(args, append([]string{benchWorkerName, "--prefix=" + b.prefix, "--name=" + name, "--hold=" + hold.String()}, b.encryption.flags()...))
	}
	return crew[report](ctx, b.urls, args, func() {
		select {
		case <-ctx.Done():
		case <-time.After(b.duration):
		}
	})
}

const benchWorkerName = "bench-worker"

// benchWorkerCommand is what the processes of bench run.
func benchWorkerCommand() *cli.Command {
	return &cli.Command{
		Name:   benchWorkerName,
		Usage:  "one of the processes of bench",
		Hidden: true,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "name", Required: true},
			&cli.DurationFlag{Name: "hold", Required: true},
		}, redisFlags()...),
		Action:       func(ctx context.Context, c *cli.Command) error { return failure(benchWork(ctx, c)) },
		OnUsageError: usageError,
	}
}

// benchWork leaves nothing held when it returns: if the parent has died, to write the report ends this process.
func benchWork(ctx context.Context, c *cli.Command) error {
	signal.Ignore(os.Interrupt, syscall.SIGHUP) // the parent ends the input
	conn, err := connect(ctx, c)
	if err != nil {
		return err
	}
	defer conn.close()
	hold := c.Duration("hold")
	lock, err := locker("mutex", conn, c.String("name"))
	if err != nil {
		return err
	}
	first, err := locker("mutex", conn, c.String("name")+":warm:"+randomName())
	if err != nil {
		return err
	}
	warm, err := first.Lock(ctx)
	if err != nil {
		return err
	}
	if err := warm.Unlock(ctx); err != nil {
		return err
	}
	return atWork(ctx, c, func(ctx context.Context) (any, error) {
		defer conn.close() // before the report: a grant may be under way
		var r report
		before, begun := conn.commands(), time.Now()
		for ctx.Err() == nil {
			lease, err := lock.Lock(ctx)
			if ctx.Err() != nil && err != nil {
				break
			}
			if err != nil {
				return nil, err
			}
			granted := time.Now()
			if hold > 0 {
				time.Sleep(hold)
			}
			unlocked := time.Now()
			if err := lease.Unlock(ctx); err != nil {
				return nil, err
			}
			r.Pairs++
			if hold > 0 {
				r.Turns = append(r.Turns, turn{granted.UnixNano(), unlocked.UnixNano()})
			}
		}
		r.Elapsed, r.Commands = time.Since(begun), conn.commands()-before
		return r, nil
	})
}

// commands is how many all managers have sent.
func (conn *connection) commands() (n uint64) {
	for _, m := range conn.managers {
		n += m.Stats().Commands
	}
	return n
}
