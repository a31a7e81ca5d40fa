package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v3"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/wire"
)

func waitCommand() *cli.Command {
	return siteCommand(&cli.Command{
		Name:      "wait",
		Usage:     "wait until a lock is free, or a permit of a semaphore",
		ArgsUsage: "NAME",
		Description: "Another can take the lock at any time after that: to do something under a lock, use run.\n\n" +
			"Exit status: 0 it was free, 124 not in time, 125 holdfast failed.",
		Flags: []cli.Flag{&cli.DurationFlag{Name: "wait", Aliases: []string{"w"}, DefaultText: "no limit", Usage: "wait at most `TIME`"}},
	}, errand{check: oneName, do: runWait, coded: runFailure})
}

// runFailure is failure for the commands whose exit status can be another command's.
func runFailure(err error) error {
	if done := cli.ExitCoder(nil); err == nil || errors.As(err, &done) {
		return err
	}
	return cli.Exit(err, runFailed)
}

// waitPoll is how often wait looks: it has no place in the lock's queue, so nothing tells it of a release.
const waitPoll = 200 * time.Millisecond

// busy reports whether a caller would have to wait, as far as info says: for a permit, if it is a semaphore.
func busy(info holdfast.Info) bool {
	if info.Kind == holdfast.KindSemaphore {
		return info.Available+info.Ended <= 0
	}
	return info.Held
}

// runWait waits until the lock is free at a majority.
func runWait(ctx context.Context, c *cli.Command, sites []*site) error {
	most, holder := time.Duration(math.MaxInt64), ""
	if c.IsSet("wait") {
		most = c.Duration("wait")
	}
	found, err := poll(ctx, most, func() (bool, error) {
		free := 0
		holder = ""
		for _, at := range sites {
			info, err := at.inspect(ctx, c.Args().First())
			switch {
			case at.away(err):
			case err != nil:
				return false, err
			case info.Kind == holdfast.KindOther:
				return false, errors.New(at.say(noLock(c.Args().First())))
			case busy(info):
				holder = at.say(holdersAt(ctx, at.client, info))
			default:
				free++
			}
		}
		return free >= majority(sites), nil
	})
	if found || err != nil {
		return err
	}
	newTeller(c).say("%s is held by %s", printable(c.Args().First()), cmp.Or(holder, "others"))
	return silent(runBusy)
}

// poll looks again and again until look finds what is waited for, and reports whether that was within a time.
func poll(ctx context.Context, most time.Duration, look func() (found bool, err error)) (bool, error) {
	over := time.NewTimer(most)
	defer over.Stop()
	tick := time.NewTicker(waitPoll)
	defer tick.Stop()
	for {
		if found, err := look(); found || err != nil {
			return found, err
		}
		select {
		case <-ctx.Done():
			return false, interrupted(ctx)
		case <-over.C:
			return false, nil
		case <-tick.C:
		}
	}
}

// A process that says what it is writes its key again every refreshEvery, with a TTL of processTTL.
const (
	processTTL   = 60 * time.Second
	refreshEvery = 20 * time.Second
	refreshLate  = 5 * time.Second // a living process can be so late
)

// watched are the keys of a lock's holders that say what they are.
type watched struct {
	client redis.UniversalClient
	keys   []string
	who    string // the first of them
}

// watchHolders finds out which processes to wait for. It must be called while they hold the lock.
func watchHolders(ctx context.Context, client redis.UniversalClient, info holdfast.Info) (*watched, error) {
	var owners []string
	for _, h := range info.Holders {
		owners = append(owners, h.Owner)
	}
	w := &watched{client: client}
	found := processesOf(ctx, client, owners)
	for _, owner := range owners {
		p := found[owner]
		if p == nil {
			return nil, fmt.Errorf("whether %s is gone cannot be found out: its process does not say what it is (WithIdentity)", printable(owner))
		}
		if w.who == "" {
			w.who = p.String()
		}
		w.keys = append(w.keys, wire.ProcessKey(owner))
	}
	return w, nil
}

// wait returns nil when all processes have ended, or have not refreshed their keys for so long that they are dead, stopped
// or cut off.
func (w *watched) wait(ctx context.Context, most time.Duration) error {
	gone, err := poll(ctx, most, func() (bool, error) {
		for _, key := range w.keys {
			left, err := w.client.PTTL(ctx, key).Result()
			if err != nil {
				return false, &unavailable{err}
			}
			if left >= processTTL-refreshEvery-refreshLate { // a key that is not there has -2
				return false, nil
			}
		}
		return true, nil
	})
	if gone || err != nil {
		return err
	}
	return &coded{errors.New("freed, but its holder " + w.who + " still runs"), exitNo}
}
