package main

import (
	"context"
	"errors"

	"github.com/urfave/cli/v3"

	"github.com/holdfast-go/holdfast"
)

func leadCommand() *cli.Command {
	return jobCommand(&cli.Command{
		Name:  "lead",
		Usage: "run a command while this process leads an election",
		Description: "It waits until it leads, publishes --value, and runs CMD. When it leads no more, CMD is ended before another\n" +
			"process can lead, and it waits for its next term. When CMD exits, the next process leads.\n\n" +
			"CMD gets stdin, stdout and stderr, HOLDFAST_LOCK, the election's name, and HOLDFAST_TOKEN, the number of the term.\n\n" +
			"The exit status is that of CMD, or 128 and the number of the signal that ended it. Others: 121 if CMD was ended\n" +
			"with its term after a signal, 125 if holdfast failed, 126 if CMD cannot be run, and 127 if CMD was not found.",
		Flags:  []cli.Flag{&cli.StringFlag{Name: "value", Usage: "publish `TEXT` while this process leads, such as its address; at most 4096 bytes"}},
		Action: runLead,
	})
}

func runLead(ctx context.Context, c *cli.Command) error {
	j := newJob(c)
	defer j.end()
	if err := j.begin(ctx, c); err != nil {
		return err
	}
	if len(j.conn.managers) > 1 {
		return cli.Exit(errors.New("an election needs one Redis: several have no common term"), runFailed)
	}
	election := j.conn.managers[0].Election(j.name)
	var term *holdfast.Term
	j.take = func(ctx context.Context) (_ *holdfast.Lease, err error) {
		term, err = election.Campaign(ctx, c.String("value"))
		return term.Lease(), err
	}
	j.giveBack = func(ctx context.Context, _ *holdfast.Lease) error { return term.Resign(ctx) }
	for {
		lease, err := j.acquire(ctx)
		if errors.Is(err, holdfast.ErrLeaseLost) { // before the command was started
			continue
		}
		if err != nil {
			return err
		}
		result, err := j.work(lease)
		switch {
		case err != nil:
			return err
		case !result.Lost:
			return statusOfCommand(result)
		case result.Told, result.Left: // a second command must not run beside what is left of this one
			return silent(runLost)
		}
		j.say("%s: this process leads no more; it waits for its next term", printable(j.name))
	}
}
