package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v3"

	"github.com/holdfast-go/holdfast/internal/supervisor"
)

// signalled is the cause of a context that a signal ended.
type signalled syscall.Signal

func (s signalled) Error() string { return fmt.Sprintf("stopped by signal: %v", syscall.Signal(s)) }

// exitCode is the one that shells use.
func (s signalled) exitCode() int { return 128 + int(s) }

// byInterrupt is the exit status of a run whose command INT has ended.
type byInterrupt struct {
	silent
	key bool // of a terminal: it has not reached this process and its neighbours
}

func (b byInterrupt) Unwrap() error { return b.silent }

// dieOfInterrupt ends this process by INT, if that has ended what it did. A shell goes on with its script otherwise.
func dieOfInterrupt(err error) {
	stopped := signalled(0)
	if by := (byInterrupt{}); errors.As(err, &by) {
		supervisor.Interrupt(by.key)
	} else if errors.As(err, &stopped) && syscall.Signal(stopped) == syscall.SIGINT && supervisor.AtKeys() {
		supervisor.Interrupt(false)
	}
}

// withSignals returns a context that the first signal to end the program cancels. The
// second one ends the program as if no one were subscribed. SIGPIPE, for output without a reader,
// ends nothing: the write fails.
func withSignals(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	unread := make(chan os.Signal, 1)
	signal.Notify(unread, syscall.SIGPIPE)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case s := <-signals:
			if n, ok := s.(syscall.Signal); ok {
				cancel(signalled(n))
			}
		case <-ctx.Done():
		}
		signal.Stop(signals)
	}()
	return ctx, func() {
		cancel(nil)
		<-ended
		signal.Stop(unread)
	}
}

// interrupted is the error of a command whose context a signal has ended.
func interrupted(ctx context.Context) error {
	if s := signalled(0); errors.As(context.Cause(ctx), &s) {
		return cli.Exit(s, s.exitCode())
	}
	return context.Cause(ctx)
}
