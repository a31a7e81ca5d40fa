package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

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

// guardName is the first argument of the guard, a process that run starts. Its others are not parsed as flags: the
// command's own are among them.
const guardName = "run-guard"

// guardOf returns the process that is the guard of j; the supervisor adds what runGuard has more.
func guardOf(j *job) (*exec.Cmd, error) {
	return self(guardName, printable(j.name), j.grace.String(), string(j.loss))
}

// runGuard is the guard, with the arguments NAME GRACE ON-LOSS IN OUT PATH ARGV0 [ARG...].
func runGuard(args []string, stderr io.Writer) int {
	var in, out int
	if len(args) < 7 {
		return exitUsage
	}
	grace, err := time.ParseDuration(args[1])
	if _, scan := fmt.Sscan(args[3]+" "+args[4], &in, &out); errors.Join(err, scan) != nil {
		return exitUsage
	}
	t := teller{w: stderr}
	return supervisor.Guard(args[0], grace, supervisor.Loss(args[2]), in, out, args[5], args[6:], func(text string) { t.insist("%s", text) })
}

// self returns this program as another process.
func self(args ...string) (*exec.Cmd, error) {
	exe, err := os.Executable()
	if runtime.GOOS == "linux" {
		exe = "/proc/self/exe" // it is there even if the file has been replaced
		if _, err = os.Stat(exe); err != nil {
			err = errors.New("there is no /proc, which holdfast needs: mount it with `mount -t proc proc /proc`")
		}
	}
	if err != nil {
		return nil, err
	}
	return exec.Command(exe, args...), nil
}
