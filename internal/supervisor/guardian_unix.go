//go:build unix

package supervisor

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guardian is the supervisor's end of the guard. It belongs to the goroutine of Run.
type guardian struct {
	pid     int
	orders  *os.File
	answers <-chan answer // closed when the guard has ended

	deadline time.Time // the last one that was told; zero: none was, and the command is not started
	told     bool
	ended    *unix.WaitStatus // nil: it was not waited for yet
}

// tellPatience bounds a write to a process that does not read: it has been stopped.
const tellPatience = 10 * time.Millisecond

// answer is a line that the guard writes.
type answer struct {
	what string
	n    int
}

// What the guard answers, with a number each.
const (
	answerRuns  = "runs"  // the command's process id
	answerFails = "fails" // the errno of a command that could not be started
	answerState = "state" // a wait status of the command
	answerGone  = "gone"  // 0: the command has exited, and nothing is left of what it started
)

// startGuard starts the guard. It waits for the first deadline, and then starts the command: there is never a command
// without a guard. The command's open files are inherited through it, so it gets its two pipes under the numbers that
// they have here.
func startGuard(c *Command) (*guardian, error) {
	cmd, err := c.Guard()
	if err != nil {
		return nil, err
	}
	in, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	answers, out, err := os.Pipe()
	if err != nil {
		_ = orders.Close()
		return nil, err
	}
	defer out.Close()
	for _, f := range []*os.File{in, out} { // nothing else is started before they are closed here
		if _, err = unix.FcntlInt(f.Fd(), unix.F_SETFD, 0); err != nil {
			break
		}
	}
	pid := 0
	if err == nil {
		args := append(append(cmd.Args, fmt.Sprint(in.Fd()), fmt.Sprint(out.Fd()), c.Path), c.Args...)
		// A group of its own: no key of the terminal reaches it. It stays in the session, as the parent of a job must.
		pid, err = spawn(cmd.Path, args, c, &syscall.SysProcAttr{Setpgid: true})
	}
	if err != nil {
		_ = orders.Close()
		_ = answers.Close()
		if errors.Is(err, unix.E2BIG) {
			return nil, &NotStarted{err}
		}
		return nil, fmt.Errorf("start the guard: %w", err)
	}
	lines := make(chan answer)
	go func() { // ends when the guard does, if Run goes on reading
		defer close(lines)
		defer answers.Close()
		for in := bufio.NewScanner(answers); in.Scan(); {
			var a answer
			if _, err := fmt.Sscan(in.Text(), &a.what, &a.n); err == nil {
				lines <- a
			}
		}
	}()
	return &guardian{pid: pid, orders: orders, answers: lines}, nil
}

// tell tells the guard of a deadline, if it is a new one. The time that is left and the wall clock's time are both
// told: the guard believes what comes first.
func (g *guardian) tell(now, deadline time.Time, told bool) {
	_ = syscall.Kill(g.pid, syscall.SIGCONT) // who stops the guard does not stop what it has to do
	if deadline.Equal(g.deadline) && told == g.told {
		return
	}
	_ = g.orders.SetWriteDeadline(time.Now().Add(tellPatience))
	if _, err := fmt.Fprintf(g.orders, "lease %d %d %t\n", deadline.Sub(now), deadline.UnixNano(), told); err == nil {
		g.deadline, g.told = deadline, told
	}
}

// dismiss lets the guard go and reports whether it has ended the command.
func (g *guardian) dismiss() bool {
	_ = syscall.Kill(g.pid, syscall.SIGCONT)
	_ = g.orders.SetWriteDeadline(time.Now().Add(afterKill))
	_, _ = fmt.Fprintln(g.orders, "over")
	_ = g.orders.Close()
	late := time.AfterFunc(afterKill, func() { _ = syscall.Kill(g.pid, syscall.SIGKILL) })
	for range g.answers {
	}
	late.Stop()
	return g.wait() == guardActed
}

// wait returns the exit status of a guard that has ended.
func (g *guardian) wait() int {
	for g.ended == nil {
		var s unix.WaitStatus
		if _, err := unix.Wait4(g.pid, &s, 0, nil); err != unix.EINTR {
			g.ended = &s
		}
	}
	return g.ended.ExitStatus()
}

// ends is told of the guard's state.
func (g *guardian) ends(s unix.WaitStatus) {
	if !s.Stopped() {
		g.ended = &s
	}
}

// errnoOf is the number of an error of execve, as text for the answer.
func errnoOf(err error) string {
	number := syscall.Errno(0)
	if !errors.As(err, &number) {
		number = syscall.EIO
	}
	return strconv.Itoa(int(number))
}
