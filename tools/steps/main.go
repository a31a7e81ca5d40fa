// Command steps runs make targets, and reports which of them have failed and how long each took:
//
//	go run ./tools/steps fmt vet lint,unit+real,around
//
// It runs its arguments in a row. An argument may have several lanes, joined by +, which run side by side; a lane has
// targets, joined by commas, which run in a row. Targets behind a slash belong to no lane: a lane that has come to its end takes the
// next of them. A target that fails does not keep the others from running.
//
// Each line of output names its target. At the end comes the whole output of each target that has failed, and then a
// table with the time and the processor time of each target.
package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r := &runner{make: cmp.Or(os.Getenv("MAKE"), "make"), out: os.Stdout}
	if !r.run(ctx, os.Args[1:]) {
		os.Exit(1)
	}
}

// runner runs targets and keeps what became of them.
type runner struct {
	make string // the command
	dir  string // where the Makefile is; empty: here

	mu    sync.Mutex // guards the following, and keeps lines of output whole
	out   io.Writer
	width int // that of the longest target's name
	steps []*step
}

// step is one run of a target.
type step struct {
	target string
	output bytes.Buffer
	took   time.Duration
	used   time.Duration // processor time, that of all processes of the step
	err    error
}

// run reports whether all targets of all arguments succeed.
func (r *runner) run(ctx context.Context, args []string) bool {
	for _, target := range strings.FieldsFunc(strings.Join(args, " "), func(c rune) bool { return strings.ContainsRune(" ,+/", c) }) {
		r.width = max(r.width, len(target))
	}
	began := time.Now()
	for _, arg := range args {
		own, shared, _ := strings.Cut(arg, "/")
		rest := make(chan string, len(shared))
		for _, target := range split(shared) {
			rest <- target
		}
		close(rest)
		var lanes sync.WaitGroup
		for lane := range strings.SplitSeq(own, "+") {
			lanes.Go(func() {
				for _, target := range split(lane) {
					r.step(ctx, target)
				}
				for target := range rest {
					r.step(ctx, target)
				}
			})
		}
		lanes.Wait()
	}
	return r.report(time.Since(began)) && ctx.Err() == nil
}

// split returns targets that are joined by commas.
func split(targets string) []string {
	return strings.FieldsFunc(targets, func(c rune) bool { return c == ',' })
}

// step runs one target, unless ctx has ended. When ctx ends, it asks make to end, which asks its own children.
func (r *runner) step(ctx context.Context, target string) {
	if ctx.Err() != nil {
		return
	}
	s := &step{target: target}
	cmd := exec.CommandContext(ctx, r.make, "--no-print-directory", target)
	cmd.Dir = r.dir
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second // a process that make has left may keep the output open
	lines := &lines{runner: r, step: s}
	cmd.Stdout, cmd.Stderr = lines, lines
	began := time.Now()
	r.line(target, "make "+target)
	s.err = cmd.Run()
	lines.end()
	s.took = time.Since(began)
	if cmd.ProcessState != nil {
		s.used = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	r.line(target, s.verdict())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, s)
}

// line prints a line of a target's output.
func (r *runner) line(target, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, "%-*s | %s\n", r.width, target, text)
}

// report prints the output of each step that failed, and the table. It reports whether none failed.
func (r *runner) report(took time.Duration) bool {
	var failed []string
	for _, s := range r.steps {
		if s.err != nil {
			failed = append(failed, s.target)
			fmt.Fprintf(r.out, "\n=== make %s: %v\n%s", s.target, s.err, s.output.Bytes())
		}
	}
	fmt.Fprintln(r.out)
	var used time.Duration
	for _, s := range r.steps {
		used += s.used
		fmt.Fprintf(r.out, "%-*s | %s\n", r.width, s.target, s.verdict())
	}
	fmt.Fprintf(r.out, "%-*s | %s\n", r.width, "in all", times("", took, used))
	if len(failed) > 0 {
		fmt.Fprintf(r.out, "failed: %s\n", strings.Join(failed, " "))
	}
	return len(failed) == 0
}

func (s *step) verdict() string {
	if s.err != nil {
		return times("FAILED", s.took, s.used)
	}
	return times("ok", s.took, s.used)
}

func times(verdict string, took, used time.Duration) string {
	return fmt.Sprintf("%-6s %4.0f s, %4.0f s of processor time", verdict, took.Seconds(), used.Seconds())
}

// lines keeps a step's output and prints it line by line. Only the goroutine of exec that copies the output uses it,
// and when that has ended, the step.
type lines struct {
	*runner
	*step
	partial []byte // the last line, which has no end yet
}

func (l *lines) Write(p []byte) (int, error) {
	l.output.Write(p)
	l.partial = append(l.partial, p...)
	for {
		line, rest, ok := bytes.Cut(l.partial, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		l.line(l.target, string(line))
		l.partial = rest
	}
}

// end prints a last line that has no end.
func (l *lines) end() {
	if len(l.partial) > 0 {
		_, _ = l.Write([]byte("\n"))
	}
}
