package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v3"

	"github.com/holdfast-go/holdfast/internal/vredis"
	"github.com/holdfast-go/holdfast/internal/wire"
)

func demoCommand() *cli.Command {
	return &cli.Command{
		Name:  "demo",
		Usage: "a flash sale: many buyers in several processes, few phones, one lock",
		Description: "Starts processes full of buyers who all want a phone at the same moment. Each reads\n" +
			"the stock from Redis, thinks, and writes it back less one, while holding the lock.\n" +
			"The exit status is 1 if stock and sales disagree in the end, as they do with --unsafe.",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "buyers", Value: 100, Usage: "let `N` buyers in"},
			&cli.IntFlag{Name: "stock", Value: 10, Usage: "sell `N` phones"},
			&cli.IntFlag{Name: "processes", Value: 4, Usage: "spread the buyers over `N` operating-system processes"},
			&cli.DurationFlag{Name: "hold", Value: 2 * time.Millisecond, Usage: "take `TIME` between reading and writing the stock"},
			&cli.BoolFlag{Name: "unsafe", Usage: "hold the same sale without the lock"},
			&cli.StringFlag{Name: "redis", Usage: "use the Redis at `URL`, redis://user:password@host:6379/0; by default the demo starts a server of its own"},
		},
		Action:       runDemo,
		OnUsageError: usageError,
	}
}

// sale is what is sold, to whom and where. Its keys share no prefix with anything else in that Redis, and a slot if it is a cluster.
type sale struct {
	ID        string
	Buyers    int
	Stock     int // phones
	Processes int
	Hold      time.Duration // how long a purchase takes between reading and writing the stock
	Unsafe    bool

	client redis.UniversalClient
}

func (s *sale) key(name string) string { return "holdfast-demo:{" + s.ID + "}:" + name }

// keepFor is for how long the sale's keys outlive its last purchase if no process removes them, because the parent was killed.
const keepFor = 24 * time.Hour

// check reports the first value that makes no sense.
func (s *sale) check() error {
	switch {
	case s.Buyers < 1:
		return fmt.Errorf("--buyers must be at least 1, not %d", s.Buyers)
	case s.Stock < 0:
		return fmt.Errorf("--stock must not be negative, as %d is", s.Stock)
	case s.Processes < 1 || s.Processes > s.Buyers:
		return fmt.Errorf("--processes must be from 1 to the number of buyers, %d, not %d", s.Buyers, s.Processes)
	case s.Hold < 0:
		return fmt.Errorf("--hold must not be negative, as %v is", s.Hold)
	}
	return nil
}

func runDemo(ctx context.Context, c *cli.Command) error {
	if err := noArguments(c); err != nil {
		return err
	}
	s := &sale{ID: rand.Text(), Buyers: c.Int("buyers"), Stock: c.Int("stock"), Processes: c.Int("processes"), Hold: c.Duration("hold"), Unsafe: c.Bool("unsafe")}
	if err := s.check(); err != nil {
		return usageError(ctx, c, err, true)
	}
	url, place := c.String("redis"), "server"
	if url == "" {
		server, err := vredis.Listen(vredis.Options{})
		if err != nil {
			return fmt.Errorf("start the embedded server: %w", err)
		}
		defer server.Close()
		url, place = "redis://"+server.Addr(), "embedded server"
	}
	client, err := openClient(url, reachWithin, encryption{})
	if err != nil {
		return usageError(ctx, c, fmt.Errorf("the URL of --redis %w", err), true)
	}
	defer client.Close()
	s.client = client
	if single, ok := client.(*redis.Client); ok {
		place += " at " + printable(single.Options().Addr)
	}
	ctx, stop := withSignals(ctx)
	defer stop()
	if err := s.reach(ctx); err != nil {
		return fmt.Errorf("no usable Redis: %s: %w", place, err)
	}
	s.header(c.Root().Writer, place)
	sold, left, buyers, err := s.run(ctx, url)
	if err != nil && ctx.Err() != nil {
		return interrupted(ctx)
	}
	if err != nil {
		return err
	}
	if err := s.print(c.Root().Writer, sold, left, buyers); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	if wrong := s.wrong(sold, left, buyers); len(wrong) > 0 {
		because := ""
		if s.Unsafe {
			because = " (as they do without a lock)"
		}
		return cli.Exit(fmt.Sprintf("stock and sales disagree%s: %s", because, strings.Join(wrong, "; ")), exitFailed)
	}
	return nil
}

// reachWithin bounds the wait for Redis to answer, and watchEvery is how often it is asked during the sale.
const (
	reachWithin = 5 * time.Second
	watchEvery  = time.Second
)

func (s *sale) reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reachWithin)
	defer cancel()
	return answers(ctx, s.client)
}

// watch returns an error when Redis is gone. No other goroutine may notice: a Lock waits for a Redis to come back as it waits
// for another owner.
func (s *sale) watch(ctx context.Context) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		if err := s.reach(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// run puts the phones on the shelf, lets the buyers in, and returns what Redis has of it when the last one has left. When it returns
// no process is left, and no key in Redis.
func (s *sale) run(ctx context.Context, url string) (sold []receipt, left int, buyers []served, err error) {
	defer func() { err = errors.Join(err, s.remove()) }()
	if err := s.client.Set(ctx, s.key("stock"), s.Stock, keepFor).Err(); err != nil {
		return nil, 0, nil, fmt.Errorf("open the shop: %w", err)
	}
	watched, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { cancel(s.watch(watched)) })
	buyers, err = crew[served](watched, url, s.shifts(), nil)
	cancel(nil)
	watching.Wait()
	if err != nil {
		return nil, 0, nil, err
	}
	if left, err = s.client.Get(ctx, s.key("stock")).Int(); err != nil {
		return nil, 0, nil, fmt.Errorf("read the stock: %w", err)
	}
	lines, err := s.client.LRange(ctx, s.key("sales"), 0, -1).Result()
	for _, line := range lines {
		var r receipt
		err = errors.Join(err, json.Unmarshal([]byte(line), &r))
		sold = append(sold, r)
	}
	return sold, left, buyers, err
}

// shifts spreads the buyers over the processes, as evenly as they go.
func (s *sale) shifts() (all [][]string) {
	first := 1
	for i := range s.Processes {
		count := (s.Buyers + i) / s.Processes
		text, _ := json.Marshal(shift{sale: *s, Process: i + 1, First: first, Count: count}) // it has no value that JSON does not know
		all = append(all, []string{buyersName, string(text)})
		first += count
	}
	return all
}

// remove deletes every key of the sale, those of the lock included: a process that was killed leaves them behind until their TTL ends.
func (s *sale) remove() error {
	ctx, cancel := context.WithTimeout(context.Background(), reachWithin)
	defer cancel()
	lock := wire.NewKeys(s.key("lock"))
	keys := []string{s.key("stock"), s.key("sales"), lock.Lock.(string), lock.Tombstones.(string), lock.Queue.(string), lock.Deadlines.(string)}
	if err := s.client.Del(ctx, keys...).Err(); err != nil {
		return fmt.Errorf("remove the sale's keys: %w", err)
	}
	return nil
}

// wrong says in what stock, sales and buyers contradict each other: each phone goes once, in the order of the numbers.
func (s *sale) wrong(sold []receipt, left int, buyers []served) (wrong []string) {
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if len(sold)+left != s.Stock {
		add("%d sold and %d left do not add up to the %d phones of the beginning", len(sold), left, s.Stock)
	}
	if twice := soldTwice(sold); twice > 0 {
		add("%d of %d sales were of a phone that was sold already", twice, len(sold))
	}
	for i, r := range sold {
		if len(wrong) == 0 && (r.Phone != i+1 || r.Left != s.Stock-r.Phone) {
			add("sale %d is out of order: phone %d, %d left", i+1, r.Phone, r.Left)
		}
	}
	served := 0
	for _, b := range buyers {
		served += len(b.Waits)
	}
	if served != s.Buyers {
		add("%d of %d buyers came back", served, s.Buyers)
	}
	if left > 0 && len(sold) < min(s.Buyers, s.Stock) {
		add("buyers were turned away with %d left", left)
	}
	return wrong
}

// soldTwice is how many buyers paid for a phone that another buyer has bought as well.
func soldTwice(sold []receipt) int {
	phones := make(map[int]bool)
	for _, r := range sold {
		phones[r.Phone] = true
	}
	return len(sold) - len(phones)
}

func (s *sale) header(w io.Writer, place string) {
	guard := "one lock, " + s.key("lock")
	if s.Unsafe {
		guard = "nothing (--unsafe)"
	}
	fmt.Fprintf(w, "Flash sale: %d buyers in %d processes, %d phones, %v per purchase\nRedis:      %s\nGuarded by: %s\n\n", s.Buyers, s.Processes, s.Stock, s.Hold, place, guard)
}
