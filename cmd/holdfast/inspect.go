package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v3"

	"github.com/holdfast-go/holdfast/internal/wire"
)

func inspectCommand() *cli.Command {
	return siteCommand(&cli.Command{
		Name:        "inspect",
		Usage:       "show all that Redis knows of a lock",
		ArgsUsage:   "NAME...",
		Description: "Exit status: 0 all are held, 1 failed, 2 usage, 3 one of them is not held, 5 Redis cannot be reached.",
		Flags:       []cli.Flag{leaseFlag(), outputFlag()},
	}, errand{check: someNames, do: runInspect, coded: failure})
}

func someNames(c *cli.Command) error {
	if !c.Args().Present() {
		return errors.New("a lock's name is needed")
	}
	return nil
}

func runInspect(ctx context.Context, c *cli.Command, sites []*site) error {
	var looks []look
	held := true
	for _, name := range c.Args().Slice() {
		holding := 0
		for _, at := range sites {
			l, err := lookAt(ctx, c, at, name)
			switch {
			case at.away(err):
				newTeller(c).say("%s", at.say(plain(err)))
				continue
			case err != nil:
				return err
			case l.Held:
				holding++
			}
			looks = append(looks, l)
		}
		held = held && holding >= majority(sites)
	}
	show := printBlocks
	if format := c.String("output"); format != formatTable && format != formatWide {
		show = func(_ io.Writer, looks []look) error { return printLooks(c, looks) }
	}
	if err := show(c.Root().Writer, looks); err != nil {
		return err
	}
	if !held {
		return silent(exitNo)
	}
	return nil
}

// lookAt finds out all that a Redis knows of a lock.
func lookAt(ctx context.Context, c *cli.Command, at *site, name string) (l look, err error) {
	info, err := at.inspect(ctx, name)
	if err != nil {
		return l, err
	}
	l = newLook(info, c.Duration("lease"))
	l.Server = at.name
	if l.Queue, err = queue(ctx, at.client, c.String("prefix")+name); err != nil {
		return l, &unavailable{err}
	}
	if l.Place, err = findPlace(ctx, at.client, c.String("prefix")+name); err != nil {
		return l, &unavailable{err}
	}
	identify(ctx, at.client, []look{l})
	l.Processes = processesOf(ctx, at.client, l.Queue)
	return l, nil
}

// queueShown is how many places of a queue are shown.
const queueShown = 100

// queue returns the owner ids that wait, the next one first. A queue that is none is one of the broken keys.
func queue(ctx context.Context, client redis.UniversalClient, mapped string) (ids []string, err error) {
	keys := wire.InspectKeys(mapped)
	for _, k := range []any{keys[2], keys[4]} { // of a mutex or fair lock, and of a read-write lock
		places, err := client.LRange(ctx, fmt.Sprint(k), 0, queueShown-1).Result()
		if err != nil && !strings.HasPrefix(err.Error(), "WRONGTYPE") {
			return nil, err
		}
		ids = append(ids, places...)
	}
	return ids, nil
}

// printBlocks prints a paragraph for each lock.
func printBlocks(w io.Writer, looks []look) error {
	var text bytes.Buffer
	for i, l := range looks {
		if i > 0 {
			fmt.Fprintln(&text)
		}
		where := ""
		if l.Server != "" {
			where = " at " + l.Server
		}
		fmt.Fprintf(&text, "%s%s\n", printable(l.Name), where)
		line := func(what, format string, args ...any) {
			fmt.Fprintf(&text, "  %-8s "+format+"\n", append([]any{what}, args...)...)
		}
		line("kind", "%s", l.Kind)
		line("state", "%s", l.state())
		if l.State != stateFree && l.State != stateOther {
			line("ttl", "%s", seconds(l.TTL))
		}
		for _, h := range l.Holders {
			side := ""
			if h.Write && l.Kind == "read" {
				side = ", also the write side"
			}
			if h.Lingers {
				side += ", may be idle"
			}
			line("holder", "%s, until %s unless renewed%s", ownerText(h, true), seconds(h.TTL), side)
			if h.Process != nil {
				line("", "%s", h.Process.details())
			}
		}
		if l.More > 0 {
			line("", "and %d more", l.More)
		}
		line("waiting", "%d", l.Waiting)
		if l.Overdue > 0 {
			line("overdue", "%d places in the queue whose time is over", l.Overdue)
		}
		for _, id := range l.Queue {
			line("queue", "%s", ownerText(lookHolder{Owner: id, Holdfast: wire.IsOurs(id), Process: l.Processes[id]}, true))
		}
		if l.Token > 0 {
			line("token", "%d", l.Token)
		}
		if l.Tombstones > 0 {
			line("late", "%d requests that may still come are refused", l.Tombstones)
		}
		line("messages", "%d connections listen to the lock's channels", l.Subscribers)
		at := ""
		if l.Node != "" {
			at = " of " + printable(l.Node)
		}
		line("slot", "%d%s", l.Slot, at)
		for _, b := range l.Broken {
			line("broken", "%s holds a %s", printable(b.Key), printable(b.Holds))
		}
	}
	_, err := text.WriteTo(w)
	return err
}
