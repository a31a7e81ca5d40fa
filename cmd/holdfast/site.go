package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v3"

	"github.com/holdfast-go/holdfast"
)

// site is the one Redis that a command asks: what ls, inspect and the others show is that of one.
type site struct {
	client redis.UniversalClient
	locks  *holdfast.Manager
}

// errand is what a command does at a site.
type errand struct {
	check func(c *cli.Command) error // of the command line, before Redis is asked; nil: there is nothing to check
	do    func(ctx context.Context, c *cli.Command, at *site) error
	coded func(err error) error // gives an error its exit status
}

// siteCommand completes cmd with what the commands of one Redis have in common: the flags, how they connect, what a
// signal does, and their exit statuses.
func siteCommand(cmd *cli.Command, e errand) *cli.Command {
	cmd.Flags = append(cmd.Flags, redisFlags()...)
	cmd.DisableSliceFlagSeparator = true
	cmd.HideHelpCommand = true
	if cmd.ArgsUsage != "" {
		cmd.ShellComplete = completeNames
	}
	cmd.OnUsageError = func(_ context.Context, c *cli.Command, err error, _ bool) error {
		return e.coded(&badUsage{notUnderstood(c, err)})
	}
	cmd.Action = func(ctx context.Context, c *cli.Command) error {
		if e.check != nil {
			if err := e.check(c); err != nil {
				return e.coded(&badUsage{notUnderstood(c, err)})
			}
		}
		ctx, stop := withSignals(ctx)
		defer stop()
		return e.coded(e.run(ctx, c))
	}
	return cmd
}

func (e errand) run(ctx context.Context, c *cli.Command) error {
	conn, err := connect(ctx, c)
	if err != nil {
		return err
	}
	defer conn.close()
	if len(conn.clients) != 1 {
		return &badUsage{fmt.Errorf("this command asks one Redis, and --redis names %d", len(conn.clients))}
	}
	err = e.do(ctx, c, &site{conn.clients[0], conn.managers[0]})
	if err != nil && ctx.Err() != nil {
		return interrupted(ctx)
	}
	return err
}

// oneName is the check of a command that takes one lock's name.
func oneName(c *cli.Command) error {
	if c.Args().Len() != 1 {
		return errors.New("one lock's name is needed")
	}
	return nil
}
