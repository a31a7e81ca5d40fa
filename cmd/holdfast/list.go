package main

import (
	"cmp"
	"context"
	"errors"
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
	return siteCommand(&cli.Command{
		Name:      "ls",
		Usage:     "list the locks that are held",
		ArgsUsage: "[PATTERN]",
		Description: "PATTERN is one of Redis: * is any text. The locks with the most waiters come first. Holdfast looks for them with SCAN,\n" +
			"never with KEYS.\n\nExit status: 0 done, 1 failed, 2 usage, 5 Redis cannot be reached.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "held-by", Usage: "only those with an owner whose id or process, app@host/pid, has `TEXT` in it"},
			&cli.BoolFlag{Name: "waiting", Usage: "only those with waiters"},
			&cli.BoolFlag{Name: "stale", Usage: "only those with something wrong"},
			&cli.DurationFlag{Name: "watch", Usage: "list them again every `TIME`, until a signal ends it"},
			&cli.IntFlag{Name: "limit", Value: 1000, Usage: "show at most `N`"},
			forFlag(), leaseFlag(), outputFlag("a table, a wide one, json, jsonl, or only the name of each", lookFormats),
		},
	}, errand{check: checkList, do: runList, coded: failure})
}

func checkList(c *cli.Command) error {
	switch {
	case c.Args().Len() > 1:
		return fmt.Errorf("one pattern is enough, not %d: quote it for the shell", c.Args().Len())
	case c.Int("limit") < 1:
		return errors.New("--limit must be positive")
	case c.IsSet("watch") && c.Duration("watch") < shortestWatch:
		return fmt.Errorf("--watch must be at least %v", shortestWatch)
	case c.IsSet("watch") && c.String("output") == formatJSON:
		return errors.New("--watch has no end, and json is one array: use jsonl")
	}
	return nil
}

func runList(ctx context.Context, c *cli.Command, sites []*site) error {
	if c.IsSet("watch") {
		return watch(ctx, c, sites)
	}
	return listOnce(ctx, c, sites)
}

func listOnce(ctx context.Context, c *cli.Command, sites []*site) error {
	s := newSurvey(c, cmp.Or(c.Args().First(), "*"))
	if !c.IsSet("watch") {
		s.shown(c)
	}
	looks, err := s.run(ctx, sites)
	if err != nil {
		return err
	}
	s.tellPart(newTeller(c))
	want := wanted(c)
	looks = slices.DeleteFunc(looks, func(l look) bool { return !want(l) })
	slices.SortFunc(looks, func(a, b look) int {
		return cmp.Or(cmp.Compare(b.waiters(), a.waiters()), strings.Compare(a.Name, b.Name))
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
		return (!waiting || l.waiters() > 0) &&
			(!stale || l.wrong()) &&
			(by == "" || slices.ContainsFunc(l.Holders, func(h lookHolder) bool {
				return strings.Contains(h.Owner, by) || (h.Process != nil && strings.Contains(h.Process.String(), by))
			}))
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
		err = printTable(w, styleOf(c, w), format == formatWide, looks)
	}
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

const shortestWatch = 100 * time.Millisecond

// clearScreen moves the cursor home and clears what is below.
const clearScreen = "\x1b[H\x1b[2J"

// watch lists the locks again and again. A terminal is cleared before each list; elsewhere an empty line is between two
// tables. An outage does not end it, but one at the beginning does.
func watch(ctx context.Context, c *cli.Command, sites []*site) error {
	w, between := c.Root().Writer, ""
	if isTerminal(w) {
		between = clearScreen
		fmt.Fprint(w, clearScreen)
	} else if format := c.String("output"); format == formatTable || format == formatWide {
		between = "\n"
	}
	err := listOnce(ctx, c, sites)
	tick := time.NewTicker(c.Duration("watch"))
	defer tick.Stop()
	for seen := err == nil; seen; {
		if err != nil && statusOf(failure(err)) != exitUnreachable {
			break // the output cannot be written, for example
		}
		if err != nil && ctx.Err() == nil {
			newTeller(c).say("%s", plain(err))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if _, err = fmt.Fprint(w, between); err == nil {
			err = listOnce(ctx, c, sites)
		}
	}
	return err
}

// statusOf returns the exit status of an error that has one.
func statusOf(err error) int {
	if coded := cli.ExitCoder(nil); errors.As(err, &coded) {
		return coded.ExitCode()
	}
	return exitFailed
}
