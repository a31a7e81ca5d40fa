package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v3"

	"github.com/holdfast-go/holdfast"
)

// site is a Redis that a command asks.
type site struct {
	client redis.UniversalClient
	locks  *holdfast.Manager
	name   string // its address; empty: there is but one
	down   error  // of several, this one did not answer when the command began
}

// errand is what a command does at its sites.
type errand struct {
	check func(c *cli.Command) error                                     // of the command line, before Redis is asked
	do    func(ctx context.Context, c *cli.Command, sites []*site) error // several sites are the members of a Redlock
	coded func(err error) error                                          // gives an error its exit status
}

// siteCommand completes cmd with what the commands that ask Redis have in common: the flags, how they connect, what a
// signal does, and their exit statuses.
func siteCommand(cmd *cli.Command, e errand) *cli.Command {
	cmd.Flags = append(cmd.Flags, redisFlags()...)
	cmd.DisableSliceFlagSeparator = true
	cmd.HideHelpCommand = true
	cmd.ShellComplete = complete
	cmd.OnUsageError = func(_ context.Context, c *cli.Command, err error, _ bool) error {
		return e.coded(&badUsage{notUnderstood(c, err)})
	}
	cmd.Action = func(ctx context.Context, c *cli.Command) error {
		if err := e.check(c); err != nil {
			return e.coded(&badUsage{notUnderstood(c, err)})
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
	if c.Name != "doctor" { // which says more about it
		if err := conn.alone(ctx, c.Duration("timeout")); err != nil {
			return err
		}
	}
	err = e.do(ctx, c, conn.sites())
	if err != nil && ctx.Err() != nil {
		return interrupted(ctx)
	}
	return err
}

func (conn *connection) sites() (sites []*site) {
	for i, client := range conn.clients {
		s := &site{client: client, locks: conn.managers[i], down: conn.down[i]}
		if len(conn.clients) > 1 {
			s.name = fmt.Sprintf("server %d", i+1)
			if single, ok := client.(*redis.Client); ok {
				s.name = printable(single.Options().Addr)
			}
		}
		sites = append(sites, s)
	}
	return sites
}

// inspect does not wait for a Redis that is down.
func (s *site) inspect(ctx context.Context, name string) (holdfast.Info, error) {
	if s.down != nil {
		return holdfast.Info{}, &unavailable{s.down}
	}
	return s.locks.Inspect(ctx, name)
}

// say puts the site's name before what is said about it.
func (s *site) say(text string) string {
	if s.name == "" {
		return text
	}
	return s.name + ": " + text
}

// away reports whether err means that one of several Redis is down. A Redlock goes on without a minority, which connect
// has checked.
func (s *site) away(err error) bool {
	return s.name != "" && statusOf(failure(err)) == exitUnreachable
}

// majority is that of a Redlock.
func majority(sites []*site) int { return len(sites)/2 + 1 }

// oneName is the check of a command that takes one lock's name.
func oneName(c *cli.Command) error {
	if c.Args().Len() != 1 {
		return errors.New("one lock's name is needed")
	}
	return nil
}
