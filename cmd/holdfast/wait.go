package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/holdfast-go/holdfast"
)

func waitCommand() *cli.Command {
	return siteCommand(&cli.Command{
		Name:      "wait",
		Usage:     "wait until a lock is free",
		ArgsUsage: "NAME",
		Description: "Another can take the lock at any time after that: to do something under a lock, use run.\n\n" +
			"Exit status: 0 it was free, 124 not in time, 125 holdfast failed.",
		Flags: []cli.Flag{&cli.DurationFlag{Name: "wait", Aliases: []string{"w"}, DefaultText: "no limit", Usage: "wait at most `TIME`"}},
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

// runWait waits until the lock is free at a majority.
func runWait(ctx context.Context, c *cli.Command, sites []*site) error {
	var over <-chan time.Time
	if w := c.Duration("wait"); c.IsSet("wait") {
		timer := time.NewTimer(w)
		defer timer.Stop()
		over = timer.C
	}
	tick := time.NewTicker(waitPoll)
	defer tick.Stop()
	for {
		free, holder := 0, ""
		for _, at := range sites {
			info, err := at.inspect(ctx, c.Args().First())
			switch {
			case at.away(err):
			case err != nil:
				return err
			case info.Kind == holdfast.KindOther:
				return errors.New(at.say(noLock(c.Args().First())))
			case info.Held:
				holder = at.say(holdersAt(ctx, at.client, info))
			default:
				free++
			}
		}
		if free >= majority(sites) {
			return nil
		}
		select {
		case <-ctx.Done():
			return interrupted(ctx)
		case <-over:
			newTeller(c).say("%s is held by %s", printable(c.Args().First()), cmp.Or(holder, "others"))
			return silent(runBusy)
		case <-tick.C:
		}
	}
}
