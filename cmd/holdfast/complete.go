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

// completionFlag is what a shell that asks for completions says behind the words. It may also be the last word of the
// command of run or lead, so the scripts say askedByShell behind it.
const (
	completionFlag = "--generate-shell-completion"
	askedByShell   = "--asked-by-a-shell"
)

// completionOf reports whether a shell asks for completions, and returns the arguments as the library knows them.
func completionOf(args []string) (_ []string, asked bool) {
	n := len(args)
	if n > 1 && args[n-1] == askedByShell && args[n-2] == completionFlag {
		return args[:n-1], true
	}
	return args, n > 1 && args[n-1] == completionFlag && !slices.ContainsFunc(args, func(a string) bool { return a == "run" || a == "lead" })
}

// saysWhoAsks makes the scripts for shells add askedByShell.
func saysWhoAsks(completion *cli.Command) {
	completion.Hidden = false
	for _, shell := range completion.Commands {
		action := shell.Action
		shell.Action = func(ctx context.Context, c *cli.Command) error {
			var script strings.Builder
			out := c.Root().Writer
			c.Root().Writer = &script
			err := action(ctx, c)
			c.Root().Writer = out
			fmt.Fprint(out, strings.ReplaceAll(script.String(), completionFlag, completionFlag+" "+askedByShell))
			return err
		}
	}
}

// valuesOf returns what may stand behind a flag of c; nil: anything.
func valuesOf(c *cli.Command, flag string) []string {
	switch flag {
	case "--kind":
		return kinds
	case "--output", "-o":
		if c.Name == "bench" || c.Name == "doctor" {
			return []string{formatTable, formatJSON, formatJSONL}
		}
		return []string{formatTable, formatWide, formatJSON, formatJSONL, formatName}
	}
	return nil
}

// complete offers the values of the flag that has been typed; or the flags of c and, if it takes one, the names of the locks that are held.
func complete(ctx context.Context, c *cli.Command) {
	words := os.Args[:len(os.Args)-1]
	for _, word := range words[max(0, len(words)-2):] { // a part of the value may be there as well
		if values := valuesOf(c, word); values != nil {
			fmt.Fprintln(c.Root().Writer, strings.Join(values, "\n"))
			return
		}
	}
	cli.DefaultCompleteWithFlags(ctx, c)
	if n := len(os.Args); c.ArgsUsage == "" || n > 2 && strings.HasPrefix(os.Args[n-2], "-") {
		return // a flag is being typed
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	conn, err := connect(ctx, c)
	if err != nil {
		return // there is nothing to offer, and nowhere to say why
	}
	defer conn.close()
	s := newSurvey(c, "*")
	s.most = completionTime / 2
	looks, _ := s.run(ctx, conn.sites())
	for _, l := range looks[:min(len(looks), completionMost)] {
		if plainName.MatchString(l.Name) {
			fmt.Fprintln(c.Root().Writer, l.Name)
		}
	}
}
