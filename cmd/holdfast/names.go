package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"
)

// commandFirst moves the common flags that stand before the name of the command behind it. Each command has them.
func commandFirst(args []string) []string {
	takesValue := make(map[string]bool)
	for _, f := range redisFlags() {
		_, isBool := f.(*cli.BoolFlag)
		for _, name := range f.Names() {
			takesValue[name] = !isBool
		}
	}
	i := 1
	for i < len(args) && strings.HasPrefix(args[i], "-") {
		name, _, assigned := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		takes, common := takesValue[name]
		if !common {
			return args
		}
		i++
		if takes && !assigned {
			i++
		}
	}
	if i >= len(args) {
		return args
	}
	return slices.Concat(args[:1], args[i:i+1], args[1:i], args[i+1:])
}

func helpCommand() *cli.Command {
	return &cli.Command{
		Name: "help", Usage: "explain a command", ArgsUsage: "[COMMAND]", Hidden: true, HideHelpCommand: true,
		Action: func(ctx context.Context, c *cli.Command) error {
			name := c.Args().First()
			switch {
			case name == "":
				return cli.ShowRootCommandHelp(c.Root())
			case c.Root().Command(name) == nil:
				return noCommand(c.Root(), name)
			}
			return cli.ShowCommandHelp(ctx, c.Root(), name)
		},
	}
}

func versionCommand() *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "print the version", Hidden: true, HideHelpCommand: true,
		Action: func(_ context.Context, c *cli.Command) error {
			cli.ShowVersion(c.Root())
			return nil
		},
	}
}

// noCommand refuses a name that no command has.
func noCommand(c *cli.Command, name string) error {
	names := []string{"help", "version"}
	for _, cmd := range c.Commands {
		if !cmd.Hidden {
			names = append(names, cmd.Name)
		}
	}
	err := errors.New("there is no such command")
	if plainName.MatchString(name) { // else it can be a URL with a password
		err = fmt.Errorf("there is no command %q", name)
	}
	if like := nearest(name, names); like != "" {
		err = fmt.Errorf("%w; did you mean %s?", err, like)
	}
	return usageError(context.Background(), c, err, false)
}

// nearest returns the one of names that differs from a word by the fewest letters, at most two and less than half; "": none.
func nearest(word string, names []string) (best string) {
	least := min(3, (len(word)+1)/2)
	for _, name := range names {
		if d := distance(word, name); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance counts the letters to add, drop or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal, row[j+1] = row[j+1], min(replaced, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

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
			return reportFormats
		}
		return lookFormats
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
