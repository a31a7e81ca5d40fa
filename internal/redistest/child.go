package redistest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

// child is a process this test binary started. It is the only thing in the
// package that sends signals, so no other process can be hit.
type child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed by the reaper once the process is reaped
	err  error         // how it ended; set before done is closed
}

// startChild starts cmd and the goroutine that reaps it. The goroutine ends
// with the process; kill ends and awaits both.
func startChild(cmd *exec.Cmd) (*child, error) {
	cmd.SysProcAttr = childAttr()
	c := &child{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The death signal fires when the starting thread ends, so that
		// thread must live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		c.err = cmd.Wait()
		close(c.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// exited reports whether the process has been reaped.
func (c *child) exited() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// pause stops the process and returns when it is stopped.
func (c *child) pause() error {
	if err := c.cmd.Process.Signal(stopSignal); err != nil {
		return fmt.Errorf("pause pid %d: %w", c.pid(), err)
	}
	awaitStopped(c.pid())
	return nil
}

// resume continues the process. It is harmless if it runs or has ended.
func (c *child) resume() error {
	err := c.cmd.Process.Signal(continueSignal)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("resume pid %d: %w", c.pid(), err)
	}
	return nil
}

// kill ends the process, stopped or not, and waits until it is reaped.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // SIGKILL ends a stopped process as well
	<-c.done
}

// logTail returns the last 8 KiB of the file, for reports of failed tests.
func logTail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if fi, err := f.Stat(); err == nil && fi.Size() > 8<<10 {
		_, _ = f.Seek(-8<<10, io.SeekEnd)
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b))
}

// lineLog is an append-only list of lines that readers can wait on.
type lineLog struct {
	mu      sync.Mutex
	lines   []string      // guarded by mu
	ended   bool          // guarded by mu; no more lines will come
	changed chan struct{} // guarded by mu; closed and replaced at every change
}

func newLineLog() *lineLog { return &lineLog{changed: make(chan struct{})} }

func (l *lineLog) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *lineLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *lineLog) snapshot() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.lines...)
}

// errLogEnded: the source of the lines has ended and none will follow.
var errLogEnded = errors.New("no more lines")

// await returns the first line from index from on that match accepts, and its
// index. It fails when the log ends or the timeout passes first.
func (l *lineLog) await(from int, match func(string) bool, timeout time.Duration) (string, int, error) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		l.mu.Lock()
		for ; from < len(l.lines); from++ {
			if line := l.lines[from]; match(line) {
				l.mu.Unlock()
				return line, from, nil
			}
		}
		ended, changed := l.ended, l.changed
		l.mu.Unlock()
		if ended {
			return "", from, errLogEnded
		}
		select {
		case <-changed:
		case <-timer.C:
			return "", from, fmt.Errorf("no such line within %v", timeout)
		}
	}
}
