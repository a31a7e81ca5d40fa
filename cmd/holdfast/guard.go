package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"

	"github.com/urfave/cli/v3"

	"github.com/holdfast-go/holdfast/internal/supervisor"
)

const guardName = "run-guard"

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
			return silent(supervisor.Guard(c.String("name"), c.Duration("grace"), supervisor.Loss(c.String("on-loss")), os.Stdin,
				func(text string) { t.insist("%s", text) }))
		},
	}
}

// guardOf returns the command that is the guard of j.
func guardOf(j *job) (*exec.Cmd, error) {
	exe, err := os.Executable()
	if runtime.GOOS == "linux" {
		exe, err = "/proc/self/exe", nil // it is there even if the file has been replaced
	}
	if err != nil {
		return nil, err
	}
	return exec.Command(exe, guardName, "--name="+printable(j.name), "--grace="+j.grace.String(), "--on-loss="+string(j.loss)), nil
}
