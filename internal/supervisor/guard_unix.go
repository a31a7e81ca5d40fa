//go:build unix

package supervisor

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Exit statuses of the guard.
const (
	guardIdle  = 0
	guardActed = 3
)

// order is one line of the pipe.
type order struct {
	deadline time.Time
	told     bool
	over     bool
}

// guard is what the guard's process knows. It belongs to the goroutine of Guard.
type guard struct {
	name    string
	say     func(string)
	answers int // an open file that does not block

	last   order
	plan   plan
	tree   tree
	acted  bool
	exited bool // the command has
	gone   bool // and nothing is left of what it started
	denied bool // it was said that processes cannot be ended
}

// Guard is the guard's process: the parent of the command. It reads orders from the open file in until the command is
// over, and returns the exit status. If in ends before that, the supervisor is dead. It answers to the open file out.
func Guard(name string, grace time.Duration, loss Loss, in, out int, path string, argv []string, say func(string)) int {
	runtime.LockOSThread() // Linux tells the command to end when the thread ends that started it
	unix.CloseOnExec(in)
	unix.CloseOnExec(out)
	_ = unix.SetNonblock(out, true)
	// They are caught, and not ignored: the command must not inherit that.
	for _, s := range append([]os.Signal{syscall.SIGPIPE}, passedOn...) {
		if !ignored(s.(syscall.Signal)) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	adoptOrphans()
	reserveThreads()
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	orders := make(chan order)
	go readOrders(os.NewFile(uintptr(in), "orders"), orders)

	g := guard{
		name: name, say: say, answers: out, tree: tree{root: os.Getpid()},
		plan: plan{grace: grace - grace/4, loss: loss}, // later than the supervisor, which can say more
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case o, ok := <-orders:
			switch {
			case !ok && (g.tree.group == 0 || g.gone):
				return g.status() // the supervisor died before there was a command, or after it
			case !ok:
				return g.finish(grace)
			case o.over:
				return g.status()
			}
			g.last = o
			if g.tree.group == 0 && !g.start(path, argv) {
				return guardIdle
			}
		case <-children:
			g.reap()
		case <-timer.C:
		}
		g.enforce(time.Now())
		timer.Reset(g.pause(time.Now()))
	}
}

// start starts the command, with the streams and the environment of this process.
func (g *guard) start(path string, argv []string) bool {
	var tty *terminal
	if group, err := unix.Getpgid(os.Getppid()); err == nil {
		tty = openTerminal(os.Stdin, os.Stdout, group)
	}
	pid, err := start(&Command{Path: path, Args: argv, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}, tty)
	if err != nil {
		g.answer(answerFails, errnoOf(err))
		return false
	}
	g.tree.group = pid
	g.answer(answerRuns, pid)
	signal.Ignore(syscall.SIGTTOU) // not before: the command would inherit it
	return true
}

func (g *guard) answer(what string, n any) {
	line := []byte(fmt.Sprintln(what, n))
	for { // it fails if the pipe is full, of stops that a stopped supervisor has not read, or the supervisor is dead
		if _, err := unix.Write(g.answers, line); err != unix.EINTR {
			return
		}
	}
}

// reap waits for what has exited, and tells the supervisor of the command's states.
func (g *guard) reap() {
	childless := reap(func(pid int, s unix.WaitStatus) {
		if pid == g.tree.group && !g.exited {
			g.exited = s.Exited() || s.Signaled()
			g.answer(answerState, uint32(s))
		}
	})
	if g.exited && !g.gone && g.tree.empty(childless) {
		g.gone = true
		g.answer(answerGone, 0)
	}
}

// readOrders ends when in does.
func readOrders(in io.Reader, orders chan<- order) {
	defer close(orders)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if lines.Text() == "over" {
			orders <- order{over: true}
			return
		}
		var o order
		var left, wall int64
		if _, err := fmt.Sscanf(lines.Text(), "lease %d %d %t", &left, &wall, &o.told); err != nil {
			continue // the end of a line that was cut off when this process was stopped
		}
		now := time.Now()
		o.deadline = now.Add(min(time.Duration(left), time.Unix(0, wall).Sub(now)))
		orders <- o
	}
}

// enforce does what the supervisor should have done by now.
func (g *guard) enforce(now time.Time) {
	if g.tree.group == 0 || g.gone {
		return
	}
	if g.last.told { // the supervisor has said TERM; only the KILL is left to this process
		g.plan.told, g.plan.killAt = true, g.last.deadline
	}
	switch act := g.plan.step(now, g.last.deadline, nil); {
	case act == term:
		g.acted = true
		g.deny("told to end", g.tree.end())
	case g.plan.killed:
		g.acted = true
		g.deny("killed", g.tree.kill())
	}
}

// deny says once that processes cannot be ended.
func (g *guard) deny(what string, denied []int) {
	if len(denied) > 0 && !g.denied {
		g.denied = true
		g.say(g.name + ": " + denial(what, denied))
	}
}

func (g *guard) pause(now time.Time) time.Duration {
	if g.tree.group == 0 || g.gone {
		return time.Hour
	}
	return max(0, min(g.plan.next(now, g.last.deadline), rekill))
}

func (g *guard) status() int {
	if g.acted {
		return guardActed
	}
	return guardIdle
}

// finish ends the command whose supervisor is dead: within grace, and before the lease ends.
func (g *guard) finish(grace time.Duration) int {
	now := time.Now()
	end := g.last.deadline
	if by := now.Add(grace); by.Before(end) {
		end = by
	}
	died := "the process that holds the lock has died"
	if !g.plan.told && g.plan.loss == LossTerm && grace > 0 {
		if denied := g.tree.end(); len(denied) > 0 {
			died, g.denied = died+"; "+denial("told to end", denied), true
		} else {
			died += "; its command is told to end"
		}
	}
	g.say(g.name + ": " + died)
	for g.reap(); until(time.Now(), end) > 0 && !g.gone; g.reap() {
		time.Sleep(drainPoll)
	}
	for range int(afterKill / drainPoll) { // a process that hangs in the kernel is not gone before it comes back from there
		if g.gone {
			break
		}
		g.deny("killed", g.tree.kill())
		time.Sleep(drainPoll)
		g.reap()
	}
	return guardActed
}
