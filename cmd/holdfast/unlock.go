package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v3"
	"golang.org/x/term"

	"github.com/holdfast-go/holdfast"
)

func unlockCommand() *cli.Command {
	return siteCommand(&cli.Command{
		Name:      "unlock",
		Usage:     "free a lock that any owner holds",
		ArgsUsage: "NAME",
		Description: "Holdfast says who holds the lock and asks for its name before it frees it. Without a terminal --force or --owner is needed.\n" +
			"The code that held it may still be running: make sure that it is dead.\n\n" +
			"Exit status: 0 freed, 1 failed, 2 usage, 3 it was free or its holder is not gone, 4 refused, 5 Redis cannot be reached.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "force", Usage: "do not ask"},
			&cli.StringFlag{Name: "owner", Usage: "do not ask, and free it only if the owner with `ID` holds it"},
			&cli.DurationFlag{Name: "wait-gone", Usage: "then wait at most `TIME` until the holder's process is gone; it must say what it is (WithIdentity)"},
		},
	}, errand{check: oneName, do: runUnlock, coded: failure})
}

func runUnlock(ctx context.Context, c *cli.Command, sites []*site) error {
	name, tell := c.Args().First(), newTeller(c)
	var held []*site
	var holders []*watched
	for _, at := range sites {
		info, err := at.inspect(ctx, name)
		switch {
		case at.away(err):
			tell.insist("%s", at.say(plain(err)))
			continue
		case err != nil:
			return err
		case info.Kind == holdfast.KindOther:
			return &coded{fmt.Errorf("%s: the key holds no lock", at.say(printable(name))), exitRefused}
		case info.Kind == holdfast.KindFree:
			continue
		}
		tell.say("%s is held by %s; %d wait for it", at.say(printable(name)), holdersAt(ctx, at.client, info), info.Waiters)
		held = append(held, at)
		if c.IsSet("wait-gone") {
			w, err := watchHolders(ctx, at.client, info)
			if err != nil {
				return &coded{err, exitRefused}
			}
			holders = append(holders, w)
		}
	}
	if len(held) == 0 {
		tell.say("%s is free", printable(name))
		return silent(exitNo)
	}
	if !c.Bool("force") && !c.IsSet("owner") {
		if err := confirm(ctx, c, name); err != nil {
			return err
		}
	}
	if err := freeAll(ctx, c, name, held); err != nil {
		return err
	}
	tell.say("%s is freed; its holder learns of it at its next renewal, within a third of its lease: make sure that it is dead", printable(name))
	for _, w := range holders {
		if err := w.wait(ctx, c.Duration("wait-gone")); err != nil {
			return err
		}
		tell.say("%s is gone: it has ended, or has not refreshed its key for %v", w.who, refreshEvery+refreshLate)
	}
	return nil
}

// freeAll frees the lock at each of the sites, and returns an error if none was left to be freed.
func freeAll(ctx context.Context, c *cli.Command, name string, held []*site) error {
	freed, taken := 0, false
	for _, at := range held {
		var done bool
		var err error
		if owner := c.String("owner"); c.IsSet("owner") {
			done, err = at.locks.ForceUnlockOf(ctx, name, owner)
		} else {
			done, err = at.locks.ForceUnlock(ctx, name)
		}
		switch {
		case errors.Is(err, holdfast.ErrWrongKind):
			return &coded{err, exitRefused}
		case err != nil:
			return err
		case done:
			freed++
		case c.IsSet("owner"):
			info, err := at.inspect(ctx, name)
			taken = taken || err != nil || info.Held
		}
	}
	switch {
	case freed > 0:
		return nil
	case taken:
		return &coded{fmt.Errorf("not freed: %s does not hold %s", printable(c.String("owner")), printable(name)), exitRefused}
	}
	newTeller(c).say("%s has become free by itself", printable(name))
	return silent(exitNo)
}

// confirm asks for the name. Ctrl-C and the end of the input refuse.
func confirm(ctx context.Context, c *cli.Command, name string) error {
	in, ok := c.Root().Reader.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return &coded{errors.New("not freed: without a terminal to ask at, --force or --owner is needed"), exitRefused}
	}
	fmt.Fprint(c.Root().ErrWriter, "type the name to free it: ")
	typed := make(chan string, 1)
	go func() { // a read of a terminal cannot be ended; the process ends soon
		lines := bufio.NewScanner(in)
		lines.Scan()
		typed <- lines.Text()
	}()
	select {
	case text := <-typed:
		if text == name || text == printable(name) {
			return nil
		}
		return &coded{errors.New("not freed: that is not the name"), exitRefused}
	case <-ctx.Done():
		return interrupted(ctx)
	}
}
