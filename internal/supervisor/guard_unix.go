//go:build unix

package supervisor

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// guardian is the supervisor's end of the guard. It belongs to the goroutine of Run, but for ended.
type guardian struct {
	pipe  *os.File
	knows chan struct{} // closed when the guard knows the command's group
	ended chan struct{} // closed when the guard has exited
	cmd   *exec.Cmd     // its ProcessState is set before ended is closed

	deadline time.Time // the last one that was told
	told     bool
	group    int // 0: not told yet
}

// tellPatience bounds a write to a guard that does not read: it has been stopped.
const tellPatience = 10 * time.Millisecond

// Exit statuses of the guard.
const (
	guardIdle  = 0
	guardActed = 3
)

// startGuard starts it before the command, so that there is never a command without a guard.
func startGuard(newGuard func() (*exec.Cmd, error)) (*guardian, error) {
	cmd, err := newGuard()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	answers, answer, err := os.Pipe()
	if err != nil {
		_ = w.Close()
		return nil, err
	}
	defer answer.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r, answer, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no key and no hang-up of a terminal reaches it
	if err := cmd.Start(); err != nil {
		_ = w.Close()
		_ = answers.Close()
		return nil, err
	}
	g := &guardian{pipe: w, knows: make(chan struct{}), ended: make(chan struct{}), cmd: cmd}
	go func() { // ends when the guard does
		defer answers.Close()
		if _, err := answers.Read(make([]byte, 1)); err == nil {
			close(g.knows)
		}
		_ = cmd.Wait()
		close(g.ended)
	}()
	return g, nil
}

// tell tells the guard of a deadline, if it is a new one. The time that is left and the wall clock's time are both
// told: the guard believes what comes first.
func (g *guardian) tell(now, deadline time.Time, told bool) {
	if deadline.Equal(g.deadline) && told == g.told {
		return
	}
	_ = g.pipe.SetWriteDeadline(time.Now().Add(tellPatience))
	if _, err := fmt.Fprintf(g.pipe, "lease %d %d %d %t\n", g.group, deadline.Sub(now), deadline.UnixNano(), told); err == nil {
		g.deadline, g.told = deadline, told
	}
}

// dismiss lets the guard go and reports whether it has ended the command.
func (g *guardian) dismiss() bool {
	_ = g.pipe.SetWriteDeadline(time.Now().Add(tellPatience))
	_, _ = fmt.Fprintln(g.pipe, "over")
	_ = g.pipe.Close()
	select {
	case <-g.ended:
	case <-time.After(afterKill): // it has been stopped
		_ = g.cmd.Process.Kill()
		<-g.ended
	}
	return g.cmd.ProcessState.ExitCode() == guardActed
}

// order is one line of the pipe.
type order struct {
	group    int
	deadline time.Time
	told     bool
	over     bool
}

// Guard is the guard's process: it reads orders from in until the command is over, and returns the exit status. If
// in ends before that, the supervisor is dead. It writes one line to out when it knows the command's group.
func Guard(name string, grace time.Duration, loss Loss, in io.Reader, out io.Writer, say func(string)) int {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGPIPE, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
	orders := make(chan order)
	go readOrders(in, orders)

	g := guard{plan: plan{grace: grace - grace/4, loss: loss}} // later than the supervisor, which can say more
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case o, ok := <-orders:
			switch {
			case !ok && (g.last.group == 0 || (&group{g.last.group}).empty()):
				return g.status() // the supervisor died before there was a command, or after it
			case !ok:
				say(name + ": the process that holds the lock has died; its command is told to end")
				return g.finish(grace)
			case o.over:
				return g.status()
			}
			if g.last.group == 0 && o.group != 0 {
				// From here on nothing but the death of this process makes it forget the group.
				_, _ = fmt.Fprintln(out, "knows")
			}
			g.last = o
		case <-timer.C:
		}
		g.enforce(time.Now())
		timer.Reset(g.pause(time.Now()))
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
		if _, err := fmt.Sscanf(lines.Text(), "lease %d %d %d %t", &o.group, &left, &wall, &o.told); err != nil {
			continue // the end of a line that was cut off when this process was stopped
		}
		now := time.Now()
		o.deadline = now.Add(min(time.Duration(left), time.Unix(0, wall).Sub(now)))
		orders <- o
	}
}

// guard is what the guard's process knows. It belongs to the goroutine of Guard.
type guard struct {
	last  order
	plan  plan
	acted bool
}

// enforce does what the supervisor should have done by now.
func (g *guard) enforce(now time.Time) {
	if g.last.group == 0 {
		return
	}
	target := &group{id: g.last.group}
	if g.last.told { // the supervisor has said TERM; only the KILL is left to this process
		g.plan.told, g.plan.killAt = true, g.last.deadline
	}
	switch g.plan.step(now, g.last.deadline, nil) {
	case term:
		g.acted = true
		target.end()
	case kill:
		g.acted = true
		target.kill()
	}
}

func (g *guard) pause(now time.Time) time.Duration {
	if g.last.group == 0 {
		return time.Hour
	}
	return max(0, min(g.plan.next(now, g.last.deadline), 250*time.Millisecond))
}

func (g *guard) status() int {
	if g.acted {
		return guardActed
	}
	return guardIdle
}

// finish ends the command whose supervisor is dead: within grace, and before the lease ends.
func (g *guard) finish(grace time.Duration) int {
	now, target := time.Now(), &group{id: g.last.group}
	end := g.last.deadline
	if by := now.Add(grace); by.Before(end) {
		end = by
	}
	if !g.plan.told && g.plan.loss == LossTerm && grace > 0 {
		target.end()
	}
	for until(time.Now(), end) > 0 {
		if target.empty() {
			return guardActed
		}
		time.Sleep(drainPoll)
	}
	target.kill()
	return guardActed
}
