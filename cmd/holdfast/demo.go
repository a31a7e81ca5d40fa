package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/demo"
)

// redisEnv can hold the URL instead of --redis. The demo's processes get it that way:
// a password must not be seen in a list of processes.
const redisEnv = "HOLDFAST_DEMO_REDIS"

func demoCommand() *cli.Command {
	return &cli.Command{
		Name:  "demo",
		Usage: "a flash sale: many buyers in several processes, few phones, one lock",
		Description: "Starts processes full of buyers who all want a phone at the same moment. Each reads\n" +
			"the stock from Redis, thinks, and writes it back less one, while holding the lock.\n" +
			"The exit status is 1 if stock and sales disagree in the end, as they do with --unsafe.",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "buyers", Value: 100, Usage: "let `N` buyers in"},
			&cli.IntFlag{Name: "stock", Value: 10, Usage: "sell `N` phones"},
			&cli.IntFlag{Name: "processes", Value: 4, Usage: "spread the buyers over `N` operating-system processes"},
			&cli.DurationFlag{Name: "hold", Value: 2 * time.Millisecond, Usage: "take `TIME` between reading and writing the stock"},
			&cli.BoolFlag{Name: "unsafe", Usage: "hold the same sale without the lock"},
			redisFlag(),
		},
		Action:       runDemo,
		OnUsageError: usageError,
	}
}

func redisFlag() cli.Flag {
	return &cli.StringFlag{
		Name:    "redis",
		Usage:   "use the Redis at `URL`, redis://user:password@host:6379/0; by default the demo starts a server of its own",
		Sources: cli.EnvVars(redisEnv),
	}
}

func runDemo(ctx context.Context, c *cli.Command) error {
	if err := noArguments(c); err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program to start it again: %w", err)
	}
	cfg := demo.Config{
		Buyers:    c.Int("buyers"),
		Stock:     c.Int("stock"),
		Processes: c.Int("processes"),
		Hold:      c.Duration("hold"),
		Unsafe:    c.Bool("unsafe"),
		Redis:     c.String("redis"),
		Spawn:     spawner(exe),
	}
	if cfg.Redis != "" {
		client, err := openClient(cfg.Redis, time.Second, encryption{})
		if err != nil {
			return usageError(ctx, c, fmt.Errorf("the URL of --redis %w", err), true)
		}
		_ = client.Close()
	}
	if err := cfg.Validate(); err != nil {
		return usageError(ctx, c, err, true)
	}

	ctx, stop := withSignals(ctx)
	defer stop()
	r, err := sell(ctx, c, cfg)
	if err != nil {
		if s := signalled(0); errors.As(context.Cause(ctx), &s) {
			return cli.Exit(err, s.exitCode())
		}
		return err
	}
	if err := r.Print(c.Root().Writer); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	if wrong := r.Disagreements(); len(wrong) > 0 {
		because := ""
		if cfg.Unsafe {
			because = " (as they do without a lock)"
		}
		return cli.Exit(fmt.Sprintf("stock and sales disagree%s: %s", because, strings.Join(wrong, "; ")), exitFailed)
	}
	return nil
}

// sell holds the sale. When it returns no process is left, and no key in Redis.
func sell(ctx context.Context, c *cli.Command, cfg demo.Config) (_ *demo.Result, err error) {
	sale, err := demo.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sale.Close()) }()
	if err := sale.PrintHeader(c.Root().Writer); err != nil {
		return nil, fmt.Errorf("print the header: %w", err)
	}
	p := newProgress(c.Root().ErrWriter, cfg.Buyers, cfg.Stock)
	defer p.done()
	return sale.Run(ctx, p.advance)
}

// spawner starts exe, this program, as buyersCommand.
func spawner(exe string) demo.Spawn {
	return func(ctx context.Context, redisURL string, s demo.Shift) *exec.Cmd {
		cmd := exec.CommandContext(ctx, exe, buyersArgs(s)...)
		cmd.Env = append(os.Environ(), redisEnv+"="+redisURL)
		return cmd
	}
}
