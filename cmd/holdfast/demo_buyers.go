package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"text/tabwriter"
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

// print writes who bought what in which order, and the sums. It writes at once: a reader that went away is one error.
func (s *sale) print(w io.Writer, sold []receipt, left int, buyers []served) error {
	var text bytes.Buffer
	if len(sold) == 0 {
		fmt.Fprintln(&text, "No sales.")
	} else {
		s.printSales(&text, sold)
	}
	fmt.Fprintln(&text)
	var all served
	for _, b := range buyers {
		all.Waits, all.Commands, all.HandedOff = append(all.Waits, b.Waits...), all.Commands+b.Commands, all.HandedOff+b.HandedOff
		all.Took = max(all.Took, b.Took)
	}
	slices.Sort(all.Waits)
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	row := func(label, format string, args ...any) {
		fmt.Fprintf(t, "%s\t%s\n", label, fmt.Sprintf(format, args...))
	}
	row("buyers", "%d, served in %v", len(all.Waits), short(all.Took))
	row("sold", "%d", len(sold))
	if s.Unsafe {
		row("oversold", "%d of these are of a phone that was sold already", soldTwice(sold))
	}
	row("sold out", "%d went home without", len(all.Waits)-len(sold))
	if lowest := min(left, slices.MinFunc(append(sold, receipt{Left: left}), func(a, b receipt) int { return a.Left - b.Left }).Left); lowest < 0 {
		row("stock left", "%d, AND IT FELL TO %d", left, lowest)
	} else {
		row("stock left", "%d, and it never fell below zero", left)
	}
	verdict := "they agree"
	if len(s.wrong(sold, left, buyers)) > 0 {
		verdict = "THEY DISAGREE"
	}
	row("stock and sales", "%d sold + %d left, %d at the beginning: %s", len(sold), left, s.Stock, verdict)
	if n := len(all.Waits); !s.Unsafe && n > 0 {
		row("waits for the lock", "p50 %v, p99 %v, max %v", short(all.Waits[n/2]), short(all.Waits[n*99/100]), short(all.Waits[n-1]))
		row("handed over", "%d times to the next buyer of the same process, without Redis", all.HandedOff)
		row("Redis commands per acquisition", "%.2f: %d by the lock in all processes / %d acquisitions", float64(all.Commands)/float64(n), all.Commands, n)
	}
	_ = t.Flush() // into memory
	_, err := text.WriteTo(w)
	return err
}

func (s *sale) printSales(w io.Writer, sold []receipt) {
	again := make(map[int]bool)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "sale\tphone\tbuyer\tprocess\twaited\tleft\t\n")
	for i, r := range sold {
		note := ""
		if again[r.Phone] {
			note = "  sold already!"
		}
		again[r.Phone] = true
		fmt.Fprintf(t, "%d\t%d\t%d\t%d\t%v\t%d\t%s\n", i+1, r.Phone, r.Buyer, r.Process, short(r.Waited), r.Left, note)
	}
	_ = t.Flush() // into memory
}

// short rounds to what a person reads.
func short(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d.Round(time.Microsecond)
	}
	return d.Round(100 * time.Microsecond)
}
