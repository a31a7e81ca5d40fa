package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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
