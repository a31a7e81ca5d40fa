//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Signals reach the command. The second TERM kills it.
func TestRun_PassesSignalsOn(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	heeded := make(chan os.Signal, 1) // where the tests run under nohup, their programs ignore HUP otherwise
	signal.Notify(heeded, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(heeded) }) // after the subtests
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			ready := filepath.Join(t.TempDir(), "ready")
			i := start(t, urlOf(srv), "run", s.String(), "--", "sh", "-c",
				`trap 'echo got it; kill $!; exit 9' $1; sleep 1000 & echo >"$2"; wait`, "sh", strconv.Itoa(int(s)), ready)
			awaitFile(t, ready)
			must(t, i.Process.Signal(s))
			i.prints(t, 9, "got it\n")
		})
	}
	t.Run("TERM twice", func(t *testing.T) {
		t.Parallel()
		ready := filepath.Join(t.TempDir(), "ready")
		i := start(t, urlOf(srv), "run", "twice", "--", "sh", "-c", `trap 'echo told >>"$1"' TERM; echo >"$1"; while :; do sleep 0.01; done`, "sh", ready)
		awaitFile(t, ready)
		must(t, i.Process.Signal(syscall.SIGTERM))
		redistest.Eventually(t, patience, "the first TERM arrives", func() bool { return strings.Contains(awaitFile(t, ready), "told") })
		again := time.NewTicker(300 * time.Millisecond) // sooner, it is the same
		defer again.Stop()
		ended := make(chan int, 1)
		go func() { ended <- i.wait(t) }()
		for {
			select {
			case <-again.C:
				_ = i.Process.Signal(syscall.SIGTERM)
				continue
			case status := <-ended:
				redistest.Want(t, status, 137, "exit status %d, want 137")
			}
			return
		}
	})
	t.Run("while it waits", func(t *testing.T) {
		t.Parallel()
		hold(t, srv, "held")
		i := start(t, urlOf(srv), "run", "held", "--", "true")
		locktest.Queued(t, srv, "redisson_lock_queue:{held}", 1)
		must(t, i.Process.Signal(syscall.SIGINT))
		i.exits(t, 130)
	})
	t.Run("ignored by nohup", func(t *testing.T) {
		t.Parallel()
		ready := filepath.Join(t.TempDir(), "ready")
		i := prepare(t, urlOf(srv))
		i.Path, i.Args = "/bin/sh", []string{"sh", "-c", `trap "" HUP; exec "$@"`, "sh", i.Path, "run", "nohup", "--", "sh", "-c",
			`echo $$ >"$1"; kill -HUP $$; kill -HUP $PPID; exit 4`, "sh", ready}
		must(t, i.Start())
		i.exits(t, 4)
	})
	t.Run("ended by INT, as is the script that it is in", func(t *testing.T) {
		t.Parallel()
		ready := filepath.Join(t.TempDir(), "ready")
		i := prepare(t, urlOf(srv))
		i.Path, i.Args = "/bin/bash", []string{"bash", "-c", `"$0" run script -- sh -c 'echo >"$1"; exec sleep 1000' sh "$1"; echo next`, i.Path, ready}
		i.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		must(t, i.Start())
		awaitFile(t, ready)
		must(t, syscall.Kill(-i.Process.Pid, syscall.SIGINT))
		if i.wait(t); i.stdout.Len() > 0 || !i.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
			t.Errorf("the script went on: %q", &i.stdout)
		}
	})
	t.Run("at the moment of the grant", func(t *testing.T) {
		t.Parallel()
		j := &job{teller: teller{w: &strings.Builder{}}, name: "moment", timeout: patience, signals: make(chan os.Signal, 1)}
		j.take = func(ctx context.Context) (*holdfast.Lease, error) { // the lock is granted when the signal has ended the wait
			j.signals <- syscall.SIGTERM
			<-ctx.Done()
			return other(t, srv).Mutex("moment").Lock(context.Background())
		}
		j.giveBack = func(ctx context.Context, lease *holdfast.Lease) error { return lease.Unlock(ctx) }
		lease, err := j.acquire(t.Context())
		if exit := cli.ExitCoder(nil); lease != nil || !errors.As(err, &exit) || exit.ExitCode() != 143 {
			t.Errorf("%v, %v; want status 143", lease, err)
		}
		redistest.Want(t, srv.Admin().Exists(t.Context(), "moment").Val(), 0, "the lock is held")
	})
}

// The time for which the lock may be held begins before the command does. A busy machine may not have started the command
// when it is to be told to end: then it is run again, with twice the time.
func TestRun_MaxHold(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	const grace = 1500 * time.Millisecond
	for limit := 5 * time.Second; ; limit *= 2 {
		ready := filepath.Join(t.TempDir(), "ready")
		begin := time.Now()
		i := start(t, urlOf(srv), "run", "job", "--lease=4500ms", "--max-hold="+limit.String(), "--grace="+grace.String(), "--",
			"sh", "-c", `trap 'echo told; exit 0' TERM; echo >"$1"; while :; do sleep 0.01; done`, "sh", ready)
		i.exits(t, 121)
		if d := time.Since(begin); d < limit-grace {
			t.Errorf("ended after %v", d)
		}
		if !strings.Contains(i.stderr.String(), "the time for which the lock may be held ends in") {
			t.Errorf("stderr does not say why: %q", &i.stderr)
		}
		if _, err := os.Stat(ready); err != nil && !t.Failed() && 2*limit < patience {
			continue
		}
		redistest.Want(t, i.stdout.String(), "told\n", "it wrote %q, want told")
		return
	}
}
