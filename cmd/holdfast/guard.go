package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"github.com/urfave/cli/v3"

	"github.com/holdfast-go/holdfast/internal/supervisor"
)

// Names of the commands that run starts.
const (
	guardName  = "run-guard"
	launchName = "run-launch"
)

// guardCommand is the second process of run: it ends the command if the first one cannot.
func guardCommand() *cli.Command {
	return &cli.Command{
		Name:   guardName,
		Usage:  "the guard of run",
		Hidden: true,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "name", Required: true},
			&cli.DurationFlag{Name: "grace", Required: true},
			&cli.StringFlag{Name: "on-loss", Required: true},
		},
		HideHelpCommand: true,
		OnUsageError:    usageError,
		Action: func(_ context.Context, c *cli.Command) error {
			t := teller{w: c.Root().ErrWriter}
			return silent(supervisor.Guard(c.String("name"), c.Duration("grace"), supervisor.Loss(c.String("on-loss")), os.Stdin, os.Stdout,
				func(text string) { t.insist("%s", text) }))
		},
	}
}

// launchCommand is the process of run that becomes the command when the guard knows of it.
func launchCommand() *cli.Command {
	return &cli.Command{
		Name:            launchName,
		Usage:           "the launcher of run",
		ArgsUsage:       "GATE FAILURE PARENT PATH ARG0 [ARG...]",
		Hidden:          true,
		HideHelpCommand: true,
		OnUsageError:    usageError,
		Action: func(_ context.Context, c *cli.Command) error {
			var gate, failure, parent int
			args := c.Args().Slice()
			if len(args) < 5 {
				return silent(exitUsage)
			}
			for i, n := range []*int{&gate, &failure, &parent} {
				if _, err := fmt.Sscan(args[i], n); err != nil {
					return silent(exitUsage)
				}
			}
			return silent(supervisor.Launch(gate, failure, parent, args[3], args[4:]))
		},
	}
}

// guardOf returns the command that is the guard of j.
func guardOf(j *job) (*exec.Cmd, error) {
	return self(guardName, "--name="+printable(j.name), "--grace="+j.grace.String(), "--on-loss="+string(j.loss))
}

func launcher() (*exec.Cmd, error) { return self(launchName, "--") }

// self returns this program as another process.
func self(args ...string) (*exec.Cmd, error) {
	exe, err := os.Executable()
	if runtime.GOOS == "linux" {
		exe, err = "/proc/self/exe", nil // it is there even if the file has been replaced
	}
	if err != nil {
		return nil, err
	}
	return exec.Command(exe, args...), nil
}
