package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/holdfast-go/holdfast"
)

func leaseFlag() cli.Flag {
	return &cli.DurationFlag{Name: "lease", Value: holdfast.DefaultLease, Usage: "judge by the lease that the programs use: `TIME`"}
}

func listCommand() *cli.Command {
	return &cli.Command{
		Name:      "ls",
		Usage:     "list the locks that are held",
		ArgsUsage: "[PATTERN]",
		Description: "PATTERN is one of Redis: * is any text. The locks with the most waiters come first. Holdfast looks for them with SCAN,\n" +
			"never with KEYS.\n\nExit status: 0 done, 1 failed, 2 usage, 5 Redis cannot be reached.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "held-by", Usage: "only those with an owner whose id has `TEXT` in it"},
			&cli.BoolFlag{Name: "waiting", Usage: "only those with waiters"},
			&cli.BoolFlag{Name: "stale", Usage: "only those with something wrong"},
			&cli.IntFlag{Name: "limit", Value: 1000, Usage: "show at most `N`"},
			leaseFlag(), outputFlag(),
		}, redisFlags()...),
		DisableSliceFlagSeparator: true,
		HideHelpCommand:           true,
		Action:                    runList,
		OnUsageError:              usageError,
	}
}

func runList(ctx context.Context, c *cli.Command) error {
	if c.Args().Len() > 1 {
		return usageError(ctx, c, fmt.Errorf("one pattern is enough, not %d: quote it for the shell", c.Args().Len()), true)
	}
	if c.Int("limit") < 1 {
		return usageError(ctx, c, fmt.Errorf("--limit must be positive"), true)
	}
	ctx, stop := withSignals(ctx)
	defer stop()
	conn, err := connect(ctx, c)
	if err != nil {
		return failure(err)
	}
	defer conn.close()
	looks, err := survey(ctx, conn, c.String("prefix"), cmp.Or(c.Args().First(), "*"), c.Duration("lease"), wanted(c))
	if err != nil {
		return failure(err)
	}
	slices.SortFunc(looks, func(a, b look) int {
		return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), strings.Compare(a.Name, b.Name))
	})
	if all := len(looks); all > c.Int("limit") {
		looks = looks[:c.Int("limit")]
		newTeller(c).say("%d of %d locks are shown; --limit shows more", len(looks), all)
	}
	return printLooks(c, looks)
}

// wanted is what the flags ask for.
func wanted(c *cli.Command) func(look) bool {
	by, waiting, stale := c.String("held-by"), c.Bool("waiting"), c.Bool("stale")
	return func(l look) bool {
		return (!waiting || l.Waiting > 0) &&
			(!stale || (l.State != stateOK && l.State != stateWriter)) &&
			(by == "" || slices.ContainsFunc(l.Holders, func(h lookHolder) bool { return strings.Contains(h.Owner, by) }))
	}
}

func printLooks(c *cli.Command, looks []look) error {
	w, format := c.Root().Writer, c.String("output")
	var err error
	switch format {
	case formatJSON, formatJSONL:
		if looks == nil {
			looks = []look{}
		}
		err = printJSON(w, format, looks)
	case formatName:
		for _, l := range looks {
			if _, err = fmt.Fprintln(w, printable(l.Name)); err != nil {
				break
			}
		}
	default:
		err = printTable(w, format == formatWide, looks)
	}
	if err != nil {
		return failure(fmt.Errorf("print: %w", err))
	}
	return nil
}

func waitCommand() *cli.Command {
	return &cli.Command{
		Name:        "wait",
		Usage:       "wait until a lock is free",
		ArgsUsage:   "NAME",
		Description: "Another can take the lock at any time after that: to do something under a lock, use run.\n\nExit status: 0 it was free, 124 not in time, 125 holdfast failed.",
		Flags: append([]cli.Flag{
			&cli.DurationFlag{Name: "wait", Aliases: []string{"w"}, Usage: "wait at most `TIME`"},
		}, redisFlags()...),
		DisableSliceFlagSeparator: true,
		HideHelpCommand:           true,
		Action:                    runWait,
		OnUsageError: func(ctx context.Context, c *cli.Command, err error, sub bool) error {
			return cli.Exit(usageError(ctx, c, err, sub), runFailed)
		},
	}
}

// waitPoll is how often wait looks: it has no place in the lock's queue, so nothing tells it of a release.
const waitPoll = 200 * time.Millisecond

func runWait(ctx context.Context, c *cli.Command) error {
	if c.Args().Len() != 1 {
		return cli.Exit(usageError(ctx, c, fmt.Errorf("one lock's name is needed"), true), runFailed)
	}
	ctx, stop := withSignals(ctx)
	defer stop()
	conn, err := connect(ctx, c)
	if err != nil {
		return cli.Exit(err, runFailed)
	}
	defer conn.close()
	_, m, err := conn.one()
	if err != nil {
		return cli.Exit(err, runFailed)
	}
	var over <-chan time.Time
	if w := c.Duration("wait"); c.IsSet("wait") {
		timer := time.NewTimer(w)
		defer timer.Stop()
		over = timer.C
	}
	tick := time.NewTicker(waitPoll)
	defer tick.Stop()
	for {
		info, err := m.Inspect(ctx, c.Args().First())
		switch {
		case ctx.Err() != nil:
			return interrupted(ctx)
		case err != nil:
			return cli.Exit(err, runFailed)
		case !info.Held:
			return nil
		}
		select {
		case <-ctx.Done():
			return interrupted(ctx)
		case <-over:
			newTeller(c).say("%s is held by %s", printable(info.Name), holdersOf(info))
			return silent(runBusy)
		case <-tick.C:
		}
	}
}
