// Command stage plays the programs in examples: several processes on one Redis, some of which it kills or pauses at the worst
// moment. The programs know nothing of it. They are started with the address of Redis in REDIS_URL.
//
//	go run ./examples/stage flash-sale
//
// A scenario has a [Director], which starts processes, prints what they print, and decides in the end whether the outcome was
// right: the exit status of the stage is 1 if it was not. Each [Process] reaches Redis through the stage. The stage can hold
// one of its requests back, so that the process is killed or paused at exactly that point.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

// scenario is how the program of that name in examples is played.
type scenario struct {
	usage  string
	modes  map[string]string // other ways than with Holdfast: flags of the program, and what the help says of them
	direct func(ctx context.Context, d *Director)
}

var scenarios = map[string]scenario{
	"flash-sale": flashSale, "stock-decrement": stockDecrement, "gateway": gateway,
	"nightly-job": nightlyJob, "fenced-writer": fencedWriter, "readers-migrator": readersMigrator,
	"leader": leader, "downloads": downloads, "upload": upload,
}

const (
	// redisEnv can hold the URL instead of --redis: a password must not be seen in a list of processes.
	redisEnv = "HOLDFAST_EXAMPLE_REDIS"
	// playWithin bounds a whole scenario.
	playWithin = time.Minute
)

func main() {
	logging.Disable() // go-redis's own log repeats on stderr what the errors say
	name := ""
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	s, ok := scenarios[name]
	if !ok {
		fmt.Fprintln(os.Stderr, "usage: stage", strings.Join(slices.Sorted(maps.Keys(scenarios)), "|"), "[flags]")
		os.Exit(2)
	}
	flags, mode := flag.NewFlagSet(name+": "+s.usage, flag.ExitOnError), ""
	redisURL := flags.String("redis", "", "use the Redis at `URL`, redis://user:password@host:6379/0; by default the stage starts a server of its own")
	for m, usage := range s.modes {
		flags.BoolFunc(m, usage, func(string) error { mode = m; return nil })
	}
	_ = flags.Parse(os.Args[2:]) // it ends the program
	if err := s.play(context.Background(), cmp.Or(*redisURL, os.Getenv(redisEnv)), mode, name); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// play runs the scenario from beginning to end. When it returns no process is left, and no key in Redis.
func (s scenario) play(ctx context.Context, redisURL, mode, program string) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	unread := make(chan os.Signal, 1)
	signal.Notify(unread, syscall.SIGPIPE) // else it ends the program; now the write fails, see Director.print
	defer signal.Stop(unread)
	ctx, cancel := context.WithTimeoutCause(ctx, playWithin, fmt.Errorf("not over after %v", playWithin))
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	d, err := newDirector(ctx, end, redisURL, mode, program)
	defer func() { err = errors.Join(err, d.close()) }()
	if err != nil {
		return err
	}
	return d.direct(s.direct)
}
