//go:build unix

package supervisor

import (
	"errors"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// secondTerm is the time in which a second TERM is passed on as KILL.
	secondTerm = 5 * time.Second
	// oneTerm is the time in which TERMs are one: timeout(1) sends one to its child and one to its group.
	oneTerm = 200 * time.Millisecond
)

// terms counts TERMs as people mean them.
type terms struct{ first time.Time }

// step returns what a TERM means that comes now: term, kill for a second one, nothing for a copy.
func (t *terms) step(now time.Time) action {
	switch since := now.Sub(t.first); {
	case t.first.IsZero() || since >= secondTerm:
		t.first = now
		return term
	case since < oneTerm:
		return nothing
	}
	return kill
}

// ending are the signals by which people end a program.
var ending = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}

// passedOn are the signals that the command gets as well.
var passedOn = append([]os.Signal{syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT}, ending...)

// Listen subscribes c to the signals that end a program, unless this one was started with them ignored.
func Listen(c chan<- os.Signal) { listen(c, ending) }

// Ends reports whether s ends a program that waits for its command's turn. Run may have subscribed it to others before:
// TSTP is obeyed.
func Ends(s os.Signal) bool {
	if s == syscall.SIGTSTP && isJob() {
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	}
	return slices.Contains(ending, s)
}

func listen(c chan<- os.Signal, signals []os.Signal) {
	for _, s := range signals {
		if !ignored(s.(syscall.Signal)) {
			signal.Notify(c, s)
		}
	}
}

// pass gives the command a signal that this process got.
func (r *run) pass(s syscall.Signal) {
	switch s {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		r.told = true
	}
	switch s {
	case syscall.SIGINT:
		r.interrupted = true
	case syscall.SIGCONT:
		if r.tty != nil && !r.exited {
			r.tty.resumed(r.tree.group)
		}
	case syscall.SIGTERM:
		switch r.terms.step(time.Now()) {
		case nothing:
			return
		case kill:
			r.ended("told to end a second time; ", "killed", r.tree.kill())
			return
		}
	}
	if r.exited {
		return // what is left is being told to end anyway
	}
	if err := r.tree.signal(s); errors.Is(err, syscall.EPERM) {
		r.say(unix.SignalName(s) + " was not delivered: " + denial("signalled", []int{r.tree.group}) + "; the lock is kept while it runs")
	}
	if s == syscall.SIGHUP || s == syscall.SIGTERM {
		_ = r.tree.signal(syscall.SIGCONT) // a stopped process does not get it otherwise
	}
}

// Interrupt ends this process as INT does, so that a shell that waits for it ends its script: see wait(2) in shells. If
// all is set, INT goes to the whole process group: the key reached only the command's. It returns if INT is ignored.
func Interrupt(all bool) {
	signal.Reset(syscall.SIGINT)
	pid := os.Getpid()
	if all {
		pid = 0
	}
	if syscall.Kill(pid, syscall.SIGINT) == nil && !ignored(syscall.SIGINT) {
		time.Sleep(time.Second) // it comes on any thread
	}
}

// AtKeys reports whether the keys of a terminal send signals to this process and its group.
func AtKeys() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	return foreground(int(tty.Fd())) == unix.Getpgrp()
}

// stop stops this process, as the command has been, if it is a job of a shell that can continue it. The guard goes on.
// It takes SIGSTOP: the Go runtime keeps its handler of SIGTSTP once that has been subscribed to.
func (r *run) stop() {
	if r.tty != nil {
		r.tty.takeBack(r.tree.group)
	}
	if isJob() {
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	}
}

// isJob reports whether the parent is a shell that has put this process into a group of its own.
func isJob() bool {
	parent := os.Getppid()
	group, err := unix.Getpgid(parent)
	session, err2 := unix.Getsid(parent)
	own, err3 := unix.Getsid(0)
	return errors.Join(err, err2, err3) == nil && session == own && group != unix.Getpgrp()
}
