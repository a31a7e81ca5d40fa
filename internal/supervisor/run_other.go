//go:build !unix

package supervisor

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// Run runs the command until it has exited. It terminates the command at the deadline of the lease: there are no
// signals here by which it could be told before. What the command has started is not ended. The error is a *NotStarted.
func Run(lease Lease, c *Command) (Result, error) {
	cmd := exec.Cmd{Path: c.Path, Args: c.Args, Env: c.Env, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr}
	if err := cmd.Start(); err != nil {
		return Result{}, &NotStarted{err}
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()

	p := plan{loss: c.Loss, limit: c.Limit, explain: c.Explain}
	if p.loss == LossTerm {
		p.loss = LossKill
	}
	var result Result
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case err := <-exited:
			if ended := lease.Err(); !result.Lost && (ended != nil || until(time.Now(), lease.Deadline()) <= 0) {
				result.Lost, result.Why = true, "the lease had ended when the command exited"
			}
			if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
				return result, err
			}
			result.Status = cmd.ProcessState.ExitCode()
			return result, nil
		case <-c.Interrupts: // Ctrl-C reaches the command as well, which decides
			result.Told = true
		case <-timer.C:
		}
		now := time.Now()
		act := p.step(now, lease.Deadline(), lease.Err())
		if act != nothing {
			result.Lost = true
		}
		switch act {
		case warn:
			c.Say(c.Name + ": " + p.why + "; the command runs on without the lock")
		case kill:
			c.Say(c.Name + ": " + p.why + "; the command is terminated")
			_ = cmd.Process.Kill()
		}
		timer.Reset(max(0, min(p.next(now, lease.Deadline()), 250*time.Millisecond)))
	}
}

// Guard is never called: Run starts none.
func Guard(string, time.Duration, Loss, int, int, string, []string, func(string)) int { return 0 }

// Listen subscribes c to the signals that end a program.
func Listen(c chan<- os.Signal) { signal.Notify(c, os.Interrupt, syscall.SIGTERM) }

// Ends reports whether s ends a program that waits for its command's turn.
func Ends(os.Signal) bool { return true }

// Interrupt does nothing: here no shell looks for it.
func Interrupt(bool) {}

// AtKeys reports whether Interrupt is of use.
func AtKeys() bool { return false }
