// Observed runs two services under load, with all that shows what their locks do: metrics for Prometheus, log lines, and
// the page of package debug.
//
//	cd examples/observed && go run .
//
// It starts a Redis of its own, unless --redis names one, and each service as a process.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// services are the processes.
var services = []struct{ name, listen string }{{"shop", "localhost:8081"}, {"warehouse", "localhost:8082"}}

func main() {
	redisURL := flag.String("redis", "", "use the Redis at this `URL`")
	lasts := flag.Duration("for", 0, "end after this `TIME`; 0: when Ctrl-C is pressed")
	anyPort := flag.Bool("any-port", false, "let the system choose the ports")
	service := flag.String("service", "", "be the service of this `NAME`")
	listen := flag.String("listen", "", "the `ADDRESS` of the service")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *lasts > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *lasts)
		defer cancel()
	}
	run := func() error { return runAll(ctx, *redisURL, *anyPort) }
	if *service != "" {
		run = func() error { return runService(ctx, *service, *listen, *redisURL) }
	}
	if err := run(); err != nil {
		slog.Error("observed", "error", err)
		os.Exit(1)
	}
}

// runAll starts the services, and waits for their ends.
func runAll(ctx context.Context, redisURL string, anyPort bool) error {
	if redisURL == "" {
		server, err := miniredis.Run()
		if err != nil {
			return fmt.Errorf("start a Redis: %w", err)
		}
		defer server.Close()
		server.ClockTTL(true) // keys expire as time passes
		redisURL = "redis://" + server.Addr()
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	failures := make([]error, len(services))
	for i, s := range services {
		if anyPort {
			s.listen = "localhost:0"
		}
		cmd := exec.CommandContext(ctx, exe, "--service="+s.name, "--listen="+s.listen, "--redis="+redisURL)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it releases its locks
		cmd.WaitDelay = 5 * time.Second
		wg.Go(func() {
			if err := cmd.Run(); err != nil && ctx.Err() == nil {
				failures[i] = fmt.Errorf("%s: %w", s.name, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(failures...)
}
