package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"
	"golang.org/x/term"

	"github.com/holdfast-go/holdfast"
)

func unlockCommand() *cli.Command {
	return siteCommand(&cli.Command{
		Name:      "unlock",
		Usage:     "free a lock that any owner holds",
		ArgsUsage: "NAME",
		Description: "Holdfast says who holds the lock and asks for its name before it frees it. An owner that takes it meanwhile keeps it.\n" +
			"Without a terminal --force or --owner is needed.\n" +
			"The code that held it may still be running: make sure that it is dead.\n\n" +
			"Exit status: 0 freed, 1 failed, 2 usage, 3 it was free or its holder is not gone, 4 refused, 5 Redis cannot be reached.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "force", Usage: "do not ask"},
			&cli.StringSliceFlag{Name: "owner", Usage: "do not ask, and free it only if the owner with `ID` holds it; of a Redlock, one for each server; of a semaphore, only these permits"},
			&cli.DurationFlag{Name: "wait-gone", Usage: "then wait at most `TIME` until the holder's process is gone; it must say what it is (WithIdentity)"},
		},
	}, errand{check: oneName, do: runUnlock, coded: failure})
}

func runUnlock(ctx context.Context, c *cli.Command, sites []*site) error {
	name, tell := c.Args().First(), newTeller(c)
	var held []*site
	var holders []*watched
	var shown []string // the owners that the question has named
	owners, others := c.StringSlice("owner"), 0
	for _, at := range sites {
		info, err := at.inspect(ctx, name)
		switch {
		case at.away(err):
			tell.insist("%s", at.say(plain(err)))
			continue
		case err != nil:
			return err
		case info.Kind == holdfast.KindOther:
			return &coded{errors.New(at.say(noLock(name))), exitRefused}
		case info.Kind == holdfast.KindFree, info.Kind == holdfast.KindSemaphore && !info.Held:
			continue
		}
		tell.say("%s is held by %s; %d wait for it", at.say(printable(name)), holdersAt(ctx, at.client, info), info.Waiters)
		held = append(held, at)
		for _, h := range info.Holders {
			shown = append(shown, h.Owner)
		}
		if !holdsAny(info, owners) {
			others++
		}
		if info.Kind == holdfast.KindSemaphore && c.IsSet("owner") { // the others keep their permits
			info.Holders = slices.DeleteFunc(info.Holders, func(h holdfast.Holder) bool { return !slices.Contains(owners, h.Owner) })
		}
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
	switch {
	case c.IsSet("owner"):
		if others >= majority(sites) {
			return notOf(name, owners, others, len(sites))
		}
	case !c.Bool("force") && len(shown) == 0:
		return &coded{fmt.Errorf("not freed: %s has no living holder, and becomes free by itself when its TTL is over; --force frees it now", printable(name)), exitRefused}
	case !c.Bool("force"):
		if err := confirm(ctx, c, name); err != nil {
			return err
		}
		owners = shown // another one can have taken it since
	}
	if err := freeAll(ctx, c, name, owners, held); err != nil {
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

// noLock says that the key of a name holds something else.
func noLock(name string) string { return printable(name) + ": the key holds no lock" }

// holdsAny reports whether one of the owners holds the lock, as far as info says.
func holdsAny(info holdfast.Info, owners []string) bool {
	return info.More > 0 || slices.ContainsFunc(info.Holders, func(h holdfast.Holder) bool { return slices.Contains(owners, h.Owner) })
}

// notOf is the error of a lock that has other owners at so many of the servers. At each server a Redlock has an owner id of its own.
func notOf(name string, owners []string, others, servers int) error {
	if servers > 1 {
		return &coded{fmt.Errorf("not freed: %s has other owners at %d of %d servers; --owner is needed for each, as inspect shows it", printable(name), others, servers), exitRefused}
	}
	return &coded{fmt.Errorf("not freed: %s is not held by %s", printable(name), printable(strings.Join(owners, " or "))), exitRefused}
}

// freeAll frees the lock at each of the sites for one of the owners, or with none for any owner, and returns an error if none
// was left to be freed.
func freeAll(ctx context.Context, c *cli.Command, name string, owners []string, held []*site) error {
	freed, taken := 0, 0
	for _, at := range held {
		free := at.locks.ForceUnlock
		if len(owners) > 0 {
			free = at.freeOf(owners)
		}
		done, err := free(ctx, name)
		switch {
		case errors.Is(err, holdfast.ErrWrongKind):
			return &coded{err, exitRefused}
		case err != nil:
			return err
		case done:
			freed++
		case len(owners) > 0:
			if info, err := at.inspect(ctx, name); err != nil || info.Held {
				taken++
			}
		}
	}
	switch {
	case freed > 0:
		return nil
	case taken > 0 && !c.IsSet("owner"):
		return &coded{fmt.Errorf("not freed: %s has another owner by now", printable(name)), exitRefused}
	case taken > 0:
		return notOf(name, owners, taken, len(held))
	}
	newTeller(c).say("%s has become free by itself", printable(name))
	return silent(exitNo)
}

// freeOf frees a lock for those of the owners that hold it.
func (at *site) freeOf(owners []string) func(ctx context.Context, name string) (bool, error) {
	return func(ctx context.Context, name string) (done bool, err error) {
		for _, owner := range owners { // of a semaphore, each has a permit
			freed, err := at.locks.ForceUnlockOf(ctx, name, owner)
			if err != nil {
				return done, err
			}
			done = done || freed
		}
		return done, nil
	}
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
