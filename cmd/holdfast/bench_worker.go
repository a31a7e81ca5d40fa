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
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"
)

// benchmark starts processes that lock and unlock.
type benchmark struct {
	exe    string
	urls   string // with spaces between several
	prefix string
	encryption
	name     string
	duration time.Duration
	progress *stages
}

// report is what a worker has done.
type report struct {
	Pairs    uint64        `json:"pairs"`
	Commands uint64        `json:"commands"`
	Elapsed  time.Duration `json:"elapsed"`
	Turns    []turn        `json:"turns,omitempty"` // if it holds each for a time
}

// turn is from a grant to its Unlock. The processes are on one host, so their clocks agree; ns since 1970.
type turn struct {
	Granted  int64 `json:"g"`
	Unlocked int64 `json:"u"`
}

// worker is one process of a benchmark.
type worker struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser // its end ends the worker
	stdout *bufio.Reader
	stderr bytes.Buffer // to be read when it has ended
}

// run has n processes work at the same time. If they hold a lock for a time, it is the same one. When run returns, no
// process is left.
func (b *benchmark) run(ctx context.Context, n int, hold time.Duration) (reports []report, err error) {
	var workers []*worker
	defer func() {
		for _, w := range workers {
			_ = w.stdin.Close()
			if ended := w.cmd.Wait(); ended != nil && err == nil {
				err = w.failed(ended)
			}
		}
		if ctx.Err() != nil {
			err = ctx.Err()
		}
	}()
	for i := range n {
		name := b.name
		if hold == 0 {
			name = fmt.Sprintf("%s:%d", b.name, i)
		}
		w, err := b.start(ctx, name, hold)
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
	b.progress.wait(ctx)
	for _, w := range workers {
		_ = w.stdin.Close()
	}
	for _, w := range workers {
		var r report
		if err := json.NewDecoder(w.stdout).Decode(&r); err != nil {
			return nil, w.failed(err)
		}
		reports = append(reports, r)
	}
	return reports, nil
}

func (b *benchmark) start(ctx context.Context, name string, hold time.Duration) (*worker, error) {
	args := append([]string{benchWorkerName, "--prefix=" + b.prefix, "--name=" + name, "--hold=" + hold.String()}, b.encryption.flags()...)
	cmd := exec.CommandContext(ctx, b.exe, args...)
	cmd.Env = append(os.Environ(), "HOLDFAST_REDIS="+b.urls) // a password must not be seen in a list of processes
	w := &worker{cmd: cmd}
	cmd.Stderr = &w.stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.stdin, w.stdout = stdin, bufio.NewReader(stdout)
	cmd.Cancel = stdin.Close // it gives its lock back
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
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
	return fmt.Errorf("a process of the benchmark failed: %w", err)
}

const benchWorkerName = "bench-worker"

// benchWorkerCommand is what the processes of bench run.
func benchWorkerCommand() *cli.Command {
	return &cli.Command{
		Name:   benchWorkerName,
		Usage:  "one of the processes of bench",
		Hidden: true,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "name", Required: true},
			&cli.DurationFlag{Name: "hold", Required: true},
		}, redisFlags()...),
		Action: func(ctx context.Context, c *cli.Command) error {
			r, err := benchWork(ctx, c)
			if err != nil {
				return failure(err)
			}
			return json.NewEncoder(c.Root().Writer).Encode(r)
		},
		OnUsageError: usageError,
	}
}

// benchWork says that it is ready, and works from the first line of its input to the end of it. Nothing is held when it
// returns: if the parent has died, to write the report ends this process.
func benchWork(ctx context.Context, c *cli.Command) (r report, err error) {
	signal.Ignore(os.Interrupt, syscall.SIGHUP) // the parent ends the input
	conn, err := connect(ctx, c)
	if err != nil {
		return r, err
	}
	defer conn.close()
	hold := c.Duration("hold")
	lock, err := locker("mutex", conn, c.String("name"))
	if err != nil {
		return r, err
	}
	first, err := locker("mutex", conn, c.String("name")+":warm:"+randomName())
	if err != nil {
		return r, err
	}
	warm, err := first.Lock(ctx)
	if err != nil {
		return r, err
	}
	if err := warm.Unlock(ctx); err != nil {
		return r, err
	}
	if _, err := fmt.Fprintln(c.Root().Writer, "ready"); err != nil {
		return r, err
	}
	in := bufio.NewReader(c.Root().Reader)
	if _, err := in.ReadString('\n'); err != nil {
		return r, nil // nothing is to be measured any more
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the input
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	before, begun := conn.commands(), time.Now()
	for ctx.Err() == nil {
		lease, err := lock.Lock(ctx)
		if ctx.Err() != nil && err != nil {
			break
		}
		if err != nil {
			return r, err
		}
		granted := time.Now()
		if hold > 0 {
			time.Sleep(hold)
		}
		unlocked := time.Now()
		if err := lease.Unlock(ctx); err != nil {
			return r, err
		}
		r.Pairs++
		if hold > 0 {
			r.Turns = append(r.Turns, turn{granted.UnixNano(), unlocked.UnixNano()})
		}
	}
	r.Elapsed, r.Commands = time.Since(begun), conn.commands()-before
	return r, nil
}

// commands is how many all managers have sent.
func (conn *connection) commands() (n uint64) {
	for _, m := range conn.managers {
		n += m.Stats().Commands
	}
	return n
}
