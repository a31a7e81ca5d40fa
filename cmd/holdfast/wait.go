package main

import (
	"context"
	"errors"
	"time"

	"github.com/urfave/cli/v3"
)

func waitCommand() *cli.Command {
	return siteCommand(&cli.Command{
		Name:      "wait",
		Usage:     "wait until a lock is free",
		ArgsUsage: "NAME",
		Description: "Another can take the lock at any time after that: to do something under a lock, use run.\n\n" +
			"Exit status: 0 it was free, 124 not in time, 125 holdfast failed.",
		Flags: []cli.Flag{&cli.DurationFlag{Name: "wait", Aliases: []string{"w"}, Usage: "wait at most `TIME`"}},
	}, errand{check: oneName, do: runWait, coded: runFailure})
}

// runFailure is failure for the commands whose exit status can be another command's.
func runFailure(err error) error {
	if done := cli.ExitCoder(nil); err == nil || errors.As(err, &done) {
		return err
	}
	return cli.Exit(err, runFailed)
}

// waitPoll is how often wait looks: it has no place in the lock's queue, so nothing tells it of a release.
const waitPoll = 200 * time.Millisecond

func runWait(ctx context.Context, c *cli.Command, at *site) error {
	var over <-chan time.Time
	if w := c.Duration("wait"); c.IsSet("wait") {
		timer := time.NewTimer(w)
		defer timer.Stop()
		over = timer.C
	}
	tick := time.NewTicker(waitPoll)
	defer tick.Stop()
	for {
		info, err := at.locks.Inspect(ctx, c.Args().First())
		switch {
		case err != nil:
			return err
		case !info.Held:
			return nil
		}
		select {
		case <-ctx.Done():
			return interrupted(ctx)
		case <-over:
			newTeller(c).say("%s is held by %s", printable(info.Name), holdersAt(ctx, at.client, info))
			return silent(runBusy)
		case <-tick.C:
		}
	}
}
