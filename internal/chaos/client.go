package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// clientRole is the role of a client process.
const clientRole = "chaos-client"

// Roles returns the roles of the helper processes, for redistest.
func Roles() map[string]func(args []string) {
	return map[string]func(args []string){
		clientRole: func(args []string) {
			var cfg clientConfig
			if err := json.Unmarshal([]byte(args[0]), &cfg); err != nil {
				panic(err)
			}
			runClient(cfg)
		},
	}
}

// clientConfig is what a client process is told.
type clientConfig struct {
	Addr, Password string
	History        string // path
	Proc           int
	Seed           uint64
	Workers        int
	Slice          time.Duration
	Linger         time.Duration // for how long it keeps locks; 0: it keeps none
	Overstay       int           // percent of the operations that keep a lease beyond its end
}

// What a client says when it is ready, when its callers have stopped, and when it has closed
// its manager.
type (
	clientReady struct {
		Prefix string // of its owner ids
	}
	clientRest struct {
		Stats holdfast.Stats
	}
	clientReport struct {
		Goroutines string // left after Close; empty: none
		Close      string // Close's error
	}
)

// client is one client process.
type client struct {
	clientConfig
	m       *holdfast.Manager
	rec     *recorder
	stop    context.Context
	endStop context.CancelFunc
	calm    atomic.Bool // nothing that holds a lock for long any more
}

// runClient works until its input says "quiesce", closes its manager when that says "leave",
// and ends with its input.
func runClient(cfg clientConfig) {
	rdb := redis.NewClient(&redis.Options{Addr: cfg.Addr, Password: cfg.Password})
	options := []holdfast.Option{holdfast.WithLease(ttl), holdfast.WithHandoffSlice(cfg.Slice), holdfast.WithLinger(cfg.Linger), holdfast.WithLogger(slog.New(slog.DiscardHandler))}
	m, err := holdfast.New(rdb, options...)
	if err != nil {
		panic(err)
	}
	rec, err := newRecorder(cfg.History)
	if err != nil {
		panic(err)
	}
	c := &client{clientConfig: cfg, m: m, rec: rec}
	c.stop, c.endStop = context.WithCancel(context.Background())
	prefix, err := c.prefix(context.Background()) // as long as it takes, while all processes start
	if err != nil {
		panic(err)
	}
	say(clientReady{prefix})

	var workers sync.WaitGroup
	start := func(n int, work func(*worker)) {
		w := &worker{client: c, n: n, rng: rand.New(rand.NewPCG(cfg.Seed, uint64(cfg.Proc)<<16|uint64(n)))}
		workers.Go(func() { work(w) })
	}
	start(0, func(w *worker) { w.keep(steadyName(cfg.Proc)) })
	start(1, func(w *worker) { w.keep(decoyName(cfg.Proc)) })
	start(2, (*worker).wait)
	start(3, (*worker).watch)
	start(4, (*worker).dwell)
	for n := range cfg.Workers {
		start(5+n, (*worker).work)
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch in.Text() {
		case "calm":
			c.calm.Store(true)
		case "quiesce":
			c.endStop()
			workers.Wait()
			say(c.rest())
		case "leave":
			say(c.leave(rdb))
		}
	}
}

func say(v any) {
	line, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}

// Each process holds two private locks all the time. No other process asks for the first, so
// that it must never be lost without cause; the nemesis spoils the second, which is
// renewed in the same request.
func steadyName(proc int) string { return fmt.Sprintf("chaos:steady:%d", proc) }
func decoyName(proc int) string  { return fmt.Sprintf("chaos:decoy:%d", proc) }

// prefix finds out what the manager's owner ids begin with.
func (c *client) prefix(ctx context.Context) (string, error) {
	name := fmt.Sprintf("chaos:hello:%d", c.Proc)
	// With a lease that outlives the start of all processes on a busy machine.
	lease, err := c.m.Mutex(name, holdfast.WithLease(time.Minute)).Lock(ctx)
	if err != nil {
		return "", err
	}
	info, err := c.m.Inspect(ctx, name)
	if err != nil || len(info.Holders) != 1 {
		return "", fmt.Errorf("%+v, %v", info, err)
	}
	if err := lease.Unlock(ctx); err != nil && !errors.Is(err, holdfast.ErrUnavailable) {
		return "", err // unavailable: it goes on in the background
	}
	prefix, _, _ := strings.Cut(info.Holders[0].Owner, ":")
	return prefix, nil
}

// cleanup is for how long a manager may be busy with what it has given up.
const cleanup = 5 * time.Second

// rest waits until the manager has nothing more to do, or has had the time for it.
func (c *client) rest() (r clientRest) {
	ctx, cancel := context.WithTimeout(context.Background(), cleanup)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for gone := false; !gone && ctx.Err() == nil; <-tick.C { // no event: cleaning up is asynchronous
		r.Stats = c.m.Stats()
		gone = r.Stats.Held+r.Stats.Waiting+r.Stats.Locks == 0
	}
	return r
}

// leave closes the manager and looks for what stays.
func (c *client) leave(rdb *redis.Client) (r clientReport) {
	ctx, cancel := context.WithTimeout(context.Background(), cleanup)
	defer cancel()
	if err := c.m.Close(ctx); err != nil {
		r.Close = err.Error()
	}
	_ = rdb.Close()
	r.Goroutines = leaked()
	return r
}

// leaked returns the goroutines that are neither the caller's nor the runtime's.
func leaked() string {
	if err := redistest.Leaked(); err != nil {
		return err.Error()
	}
	return ""
}

// resultOf sorts an error of an acquire or of an Unlock.
func resultOf(err error) (Result, string) {
	var lost *holdfast.LostError
	switch {
	case err == nil:
		return OK, ""
	case errors.As(err, &lost):
		return Lost, string(lost.Reason)
	case errors.Is(err, holdfast.ErrMaxHold):
		return Lost, maxHold
	case errors.Is(err, holdfast.ErrUnavailable):
		return Unavailable, ""
	case errors.Is(err, holdfast.ErrNotAcquired):
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return Ended, "" // a TryLock, too, can be cut short
		}
		return Refused, ""
	case errors.Is(err, holdfast.ErrWrongKind):
		return Failed, "wrong kind"
	}
	return Failed, err.Error()
}
