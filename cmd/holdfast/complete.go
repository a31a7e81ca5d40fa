package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"
)

const (
	completionTime = time.Second // a shell waits for it
	completionMost = 1000
)

// plainName matches the names that are offered. A shell would expand others, and execute what is in them; a colon ends
// a name in what the shells' scripts read.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./-]*$`)

// completionFlag is the last argument when a shell asks for completions.
const completionFlag = "--generate-shell-completion"

// completesCommand reports whether a shell asks for completions of the command that run is to run. The library takes
// that for a call, and would run it.
func completesCommand(args []string) bool {
	return len(args) > 0 && args[len(args)-1] == completionFlag && slices.Contains(args, "--")
}

// completeNames offers the flags of c, and the names of the locks that are held.
func completeNames(ctx context.Context, c *cli.Command) {
	cli.DefaultCompleteWithFlags(ctx, c)
	if n := len(os.Args); n > 2 && strings.HasPrefix(os.Args[n-2], "-") {
		return // a flag is being typed
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	conn, err := connect(ctx, c)
	if err != nil {
		return // there is nothing to offer, and nowhere to say why
	}
	defer conn.close()
	prefix := c.String("prefix")
	looks, _ := survey(ctx, conn.sites(), prefix, "*", time.Nanosecond, func(look) bool { return true })
	for _, l := range looks[:min(len(looks), completionMost)] {
		if plainName.MatchString(l.Name) {
			fmt.Fprintln(c.Root().Writer, l.Name)
		}
	}
}
