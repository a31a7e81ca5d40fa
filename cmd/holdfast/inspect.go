package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v3"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/wire"
)

func inspectCommand() *cli.Command {
	return siteCommand(&cli.Command{
		Name:        "inspect",
		Usage:       "show all that Redis knows of a lock",
		ArgsUsage:   "NAME...",
		Description: "Exit status: 0 all are held, 1 failed, 2 usage, 3 one of them is not held, 5 Redis cannot be reached.",
		Flags:       []cli.Flag{leaseFlag(), outputFlag("a table, a wide one, json, jsonl, or only the name of each", lookFormats)},
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
	print := func() error { return printBlocks(c.Root().Writer, c.String("prefix"), looks) }
	if format := c.String("output"); format != formatTable && format != formatWide {
		print = func() error { return printLooks(c, looks) }
	}
	if err := print(); err != nil {
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
	l.Queue = l.queued
	if l.Place, err = findPlace(ctx, at.client, c.String("prefix")+name); err != nil {
		return l, &unavailable{err}
	}
	looks := []look{l}
	identify(ctx, at.client, c.String("prefix"), looks)
	l = looks[0]
	l.Leader = leaderAt(ctx, at, l)
	l.Processes = processesOf(ctx, at.client, l.Queue)
	for id, p := range l.Processes {
		if n := p.waits(c.String("prefix") + name).Callers; n > 0 {
			if l.Callers == nil {
				l.Callers = make(map[string]int)
			}
			l.Callers[id] = n
		}
	}
	return l, nil
}

// leaderAt returns nil unless the lock is that of an election whose leader has said that it leads. The user may lack the right to look.
func leaderAt(ctx context.Context, at *site, l look) *lookLeader {
	if l.Kind != string(holdfast.KindMutex) || len(l.Holders) == 0 || !l.Holders[0].Holdfast { // a fenced lock of Redisson need not be an election
		return nil
	}
	leader, err := at.locks.Election(l.Name).Leader(ctx)
	if err != nil {
		return nil
	}
	return &lookLeader{leader.Term, leader.Value}
}

// printBlocks prints a paragraph for each lock.
func printBlocks(w io.Writer, prefix string, looks []look) error {
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
		insiders := func(p *Process) {
			if w := p.waits(prefix + l.Name); w.Callers > 0 {
				line("", "as it last said, %d of its callers wait, the first since %s", w.Callers, w.Since.UTC().Format(time.RFC3339))
			}
		}
		line("kind", "%s", l.Kind)
		line("state", "%s", l.state())
		if l.State != stateFree && l.State != stateOther && l.State != statePaused {
			line("ttl", "%s", seconds(l.TTL))
		}
		if s := l.Semaphore; s != nil && s.Ended > 0 {
			line("ended", "%d of the available permits, whose time is over", s.Ended)
		}
		for _, h := range l.Holders {
			side := ""
			if h.Write && l.Kind == "read" {
				side = ", also the write side"
			}
			if h.Lingers {
				side += ", may be idle"
			}
			if h.Value != "" {
				side += fmt.Sprintf(", value %q", h.Value)
			}
			renewal := " unless renewed"
			if h.Detached {
				renewal, side = "", side+", detached"
			}
			line("holder", "%s, until %s%s%s", ownerText(h, true), seconds(h.TTL), renewal, side)
			if h.Process != nil {
				line("", "%s", h.Process.details())
			}
			insiders(h.Process)
		}
		if l.Leader != nil {
			line("leader", "in term %d, says %s", l.Leader.Term, printable(l.Leader.Value))
		}
		if l.More > 0 {
			line("", "and %d more", l.More)
		}
		line("waiting", "%d", l.waiters())
		if l.Overdue > 0 {
			line("overdue", "%d places in the queue whose time is over", l.Overdue)
		}
		for _, id := range l.Queue {
			line("queue", "%s", ownerText(lookHolder{Owner: id, Holdfast: wire.IsOurs(id), Process: l.Processes[id]}, true))
			insiders(l.Processes[id])
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

// Place is where a lock is, and what there is beside it. It is exported for its JSON.
type Place struct {
	Tombstones  int    `json:"tombstones"`  // owner ids whose late requests are refused
	Subscribers int64  `json:"subscribers"` // connections that listen to the channels on which a release is announced
	Slot        uint16 `json:"slot"`
	Node        string `json:"node,omitempty"` // of a cluster
}

// findPlace asks for what Inspect does not.
func findPlace(ctx context.Context, client redis.UniversalClient, mapped string) (*Place, error) {
	p := &Place{Slot: wire.Slot(mapped)}
	n, err := client.ZCount(ctx, wire.NewKeys(mapped).Tombstones.(string), "-inf", "+inf").Result()
	if err != nil && !strings.HasPrefix(err.Error(), "WRONGTYPE") {
		return nil, err
	}
	p.Tombstones = int(n)
	lock, rw := wire.Channels(mapped)
	channels := []string{lock, rw, wire.PermitChannel(mapped)}
	node, sharded := redis.Cmdable(client), []string(nil)
	if cluster, ok := client.(*redis.ClusterClient); ok {
		master, err := cluster.MasterForKey(ctx, mapped)
		if err != nil {
			return nil, err
		}
		node, p.Node, sharded = master, master.Options().Addr, channels
	}
	p.Subscribers, err = listeners(ctx, node, channels, sharded)
	return p, err
}
