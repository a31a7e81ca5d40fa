package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v3"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-go/holdfast"
)

const buyersName = "demo-buyers"

// buyersCommand is what the demo's processes run.
func buyersCommand() *cli.Command {
	return &cli.Command{Name: buyersName, Usage: "one of the demo's processes", Hidden: true, Action: runBuyers, OnUsageError: usageError}
}

// shift is the work of one process of a sale: Count buyers, numbered from First on.
type shift struct {
	sale
	Process, First, Count int

	mutex  *holdfast.Mutex
	mu     sync.Mutex // guards served
	served served
}

// receipt is a sold phone, as the shop writes it down.
type receipt struct {
	Phone   int // from 1 on, in the order in which they should go
	Buyer   int
	Process int
	Left    int // phones in stock afterwards
	Waited  time.Duration
}

// served is what a process reports of its buyers.
type served struct {
	Waits     []time.Duration // for the lock
	Commands  uint64          // holdfast.Stats.Commands
	HandedOff uint64          // holdfast.Stats.HandedOff
	Took      time.Duration   // until the last of them was served
}

func runBuyers(ctx context.Context, c *cli.Command) error {
	s := new(shift)
	if err := json.Unmarshal([]byte(c.Args().First()), s); err != nil {
		return usageError(ctx, c, errors.New("it is for the demo alone"), true)
	}
	signal.Ignore(os.Interrupt, syscall.SIGHUP) // the parent ends the input, and then the lock is still given back
	client, err := openClient(os.Getenv("HOLDFAST_REDIS"), reachWithin, encryption{})
	if err != nil {
		return err
	}
	defer client.Close()
	locks, err := holdfast.New(client, holdfast.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	s.client, s.mutex = client, locks.Mutex(s.key("lock"))
	if err := s.reach(ctx); err != nil { // connected before the race begins
		return err
	}
	return atWork(ctx, c, func(ctx context.Context) (any, error) {
		begun := time.Now()
		buyers, serving := errgroup.WithContext(ctx)
		for buyer := s.First; buyer < s.First+s.Count; buyer++ {
			buyers.Go(func() error { return s.serve(serving, buyer) })
		}
		err := buyers.Wait()
		s.served.Took = time.Since(begun)
		err = errors.Join(err, locks.Close(context.WithoutCancel(ctx))) // a lock that is held is given back even if ctx has ended
		stats := locks.Stats()
		s.served.Commands, s.served.HandedOff = stats.Commands, stats.HandedOff
		return s.served, err
	})
}

// serve is one buyer's visit: to read the stock, think, and write it back less one. The lock is all that keeps the count right.
func (s *shift) serve(ctx context.Context, buyer int) error {
	asked := time.Now()
	visit := func(ctx context.Context, lease *holdfast.Lease) error {
		r := receipt{Buyer: buyer, Process: s.Process, Waited: time.Since(asked)}
		left, err := s.client.Get(ctx, s.key("stock")).Int()
		if err != nil {
			return fmt.Errorf("read the stock: %w", err)
		}
		s.mu.Lock()
		s.served.Waits = append(s.served.Waits, r.Waited)
		s.mu.Unlock()
		if left <= 0 {
			return nil
		}
		select {
		case <-time.After(s.Hold):
		case <-ctx.Done(): // under a lock that is the end of the lease
			return context.Cause(ctx)
		}
		if lease != nil && !lease.Valid() {
			return errors.New("the lease ended before the sale was written")
		}
		r.Phone, r.Left = s.Stock-left+1, left-1
		return s.sell(ctx, r)
	}
	if s.Unsafe {
		return visit(ctx, nil)
	}
	return holdfast.Do(ctx, s.mutex, visit)
}

// sell overwrites the stock with what the receipt says is left, and files the receipt.
func (s *shift) sell(ctx context.Context, r receipt) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, s.key("stock"), r.Left, keepFor)
		p.RPush(ctx, s.key("sales"), text)
		p.Expire(ctx, s.key("sales"), keepFor)
		return nil
	})
	return err
}
