package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/urfave/cli/v3"
)

// worker is a process of this program that works beside others: for bench, or for the demo.
type worker struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser // its end ends the worker
	stdout *bufio.Reader
	stderr bytes.Buffer // to be read when it has ended
}

// crew starts a process for each list of arguments, has them begin at the same time, and returns what they report. It calls during
// while they work, if it is not nil, and then ends them; otherwise each ends by itself. When crew returns, no process is left.
func crew[R any](ctx context.Context, urls string, args [][]string, during func()) (reports []R, err error) {
	var workers []*worker
	defer func() {
		for _, w := range workers {
			_ = w.stdin.Close()
			if ended := w.cmd.Wait(); ended != nil && err == nil {
				err = w.failed(ended)
			}
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	for _, a := range args {
		w, err := startWorker(ctx, urls, a)
		if err != nil {
			return nil, err
		}
		workers = append(workers, w)
	}
	for _, w := range workers { // all have connected
		if _, err := w.stdout.ReadString('\n'); err != nil {
			return nil, w.failed(err)
		}
	}
	for _, w := range workers {
		if _, err := io.WriteString(w.stdin, "go\n"); err != nil {
			return nil, w.failed(err)
		}
	}
	if during != nil {
		during()
		for _, w := range workers {
			_ = w.stdin.Close()
		}
	}
	for _, w := range workers {
		var r R
		if err := json.NewDecoder(w.stdout).Decode(&r); err != nil {
			return nil, w.failed(err)
		}
		reports = append(reports, r)
	}
	return reports, nil
}

func startWorker(ctx context.Context, urls string, args []string) (*worker, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program to start it again: %w", err)
	}
	w := &worker{cmd: exec.CommandContext(ctx, exe, args...)}
	w.cmd.Env = append(os.Environ(), "HOLDFAST_REDIS="+urls) // a password must not be seen in a list of processes
	w.cmd.Stderr = &w.stderr
	stdin, err := w.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.stdin, w.stdout = stdin, bufio.NewReader(stdout)
	w.cmd.Cancel = stdin.Close // it gives its lock back
	w.cmd.WaitDelay = 5 * time.Second
	if err := w.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a process: %w", err)
	}
	return w, nil
}

// failed is the error of a worker that has ended too early. It waits for the end, so that all it said is there.
func (w *worker) failed(err error) error {
	_ = w.stdin.Close()
	_ = w.cmd.Wait()
	if said := strings.TrimSpace(strings.TrimPrefix(w.stderr.String(), "holdfast: ")); said != "" {
		err = errors.New(said)
	}
	if w.cmd.ProcessState != nil && w.cmd.ProcessState.ExitCode() == exitUnreachable {
		return &coded{err, exitUnreachable}
	}
	return fmt.Errorf("one of the processes failed: %w", err)
}

// atWork is what a worker does: it says that it is ready, works from the first line of its input on, and reports what work returns.
// The context of work ends with the input: the parent wants no more, or has died.
func atWork(ctx context.Context, c *cli.Command, work func(context.Context) (any, error)) error {
	if _, err := fmt.Fprintln(c.Root().Writer, "ready"); err != nil {
		return err
	}
	in := bufio.NewReader(c.Root().Reader)
	if _, err := in.ReadString('\n'); err != nil {
		return nil // nothing is to be done any more
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the input
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	report, err := work(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(c.Root().Writer).Encode(report)
}
