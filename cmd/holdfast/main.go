// Command holdfast works with the locks of a Redis from a shell:
//
//	holdfast run nightly -- ./report.sh
//
// runs a script while it holds a lock, and `holdfast lead` while this process leads an election.
// docs/COMMAND.md has all commands. It also shows what Holdfast does:
//
//	go run ./cmd/holdfast demo
//
// is a flash sale in which 100 buyers in 4 processes fight for 10 phones. It needs
// nothing installed. `holdfast demo --help` lists its numbers.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9/logging"
	"github.com/urfave/cli/v3"
)

// Exit statuses; beyond these, 128 + n when signal n ended the command.
const (
	exitFailed = 1 // also: stock and sales disagree
	exitUsage  = 2
)

func main() {
	logging.Disable() // go-redis's own log repeats on stderr what the errors say
	os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// run returns the exit status.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 1 && args[1] == guardName {
		return runGuard(args[2:], stderr)
	}
	args, completes := completionOf(commandFirst(args))
	os.Args = args // the library reads them there as well
	if completes && slices.Contains(args, "--") {
		return 0 // the command of run or lead is not completed
	}
	program := newCommand(stdin, stdout, stderr)
	program.EnableShellCompletion = completes
	err := program.Run(context.Background(), args)
	if err == nil {
		return 0
	}
	if said := silent(0); errors.As(err, &said) {
		dieOfInterrupt(err)
		return said.ExitCode()
	}
	fmt.Fprintf(stderr, "holdfast: %s\n", withoutPrefix(err))
	dieOfInterrupt(err)
	if coded := cli.ExitCoder(nil); errors.As(err, &coded) {
		if _, child := coded.(*exec.ExitError); !child { // a child's status is not this program's
			return coded.ExitCode()
		}
	}
	return exitFailed
}

func newCommand(stdin io.Reader, stdout, stderr io.Writer) *cli.Command {
	return &cli.Command{
		Name:            "holdfast",
		Usage:           "distributed locks on Redis",
		Version:         version(),
		HideHelpCommand: true,

		ConfigureShellCompletionCommand: saysWhoAsks,

		Reader:    stdin,
		Writer:    stdout,
		ErrWriter: stderr,
		Commands:  []*cli.Command{runCommand(), leadCommand(), listCommand(), topCommand(), inspectCommand(), waitCommand(), unlockCommand(), doctorCommand(), benchCommand(), demoCommand(), buyersCommand(), benchWorkerCommand(), helpCommand(), versionCommand()},
		Action: func(_ context.Context, c *cli.Command) error {
			if c.Args().Present() {
				return noCommand(c, c.Args().First())
			}
			return cli.ShowRootCommandHelp(c)
		},
		OnUsageError: usageError,
		// run decides the exit status, after everything has been cleaned up.
		ExitErrHandler: func(context.Context, *cli.Command, error) {},
	}
}

// usageError is for commands that were not understood: nothing has been started.
func usageError(_ context.Context, c *cli.Command, err error, _ bool) error {
	return cli.Exit(notUnderstood(c, err), exitUsage)
}

func notUnderstood(c *cli.Command, err error) error {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: "); ok {
		var names []string
		for _, f := range c.Flags {
			names = append(names, f.Names()...)
		}
		if like := nearest(strings.TrimLeft(name, "-"), names); like != "" {
			err = fmt.Errorf("%w; did you mean --%s?", err, like)
		}
	}
	if strings.Contains(text, "://") { // it can have a password
		err = errors.New("a URL stands where it does not belong")
	}
	return fmt.Errorf("%w (see %s --help)", err, c.FullName())
}

// noArguments refuses what is not a flag.
func noArguments(c *cli.Command) error {
	if !c.Args().Present() {
		return nil
	}
	err := errors.New("there is an unexpected argument")
	if first := c.Args().First(); plainName.MatchString(first) { // else it can be a URL with a password
		err = fmt.Errorf("unexpected argument %q", first)
	}
	return usageError(context.Background(), c, err, false)
}

// version is that of the module; Go makes one of the commit if that has no tag.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return cmp.Or(info.Main.Version, "(devel)")
}
