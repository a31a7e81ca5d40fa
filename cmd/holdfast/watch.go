package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"
)

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
