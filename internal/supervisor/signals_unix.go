//go:build unix

package supervisor

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// secondTerm is the time in which a second TERM is passed on as KILL.
const secondTerm = 5 * time.Second

// passedOn are the signals that the command gets as well.
var passedOn = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT,
}

// pass gives the command a signal that this process got.
func (r *run) pass(s syscall.Signal) {
	if r.exited {
		return // what is left is being told to end anyway
	}
	switch s {
	case syscall.SIGQUIT:
		if r.launch.gate != nil {
			s = syscall.SIGTERM // the launcher would print its stacks
		}
	case syscall.SIGCONT:
		if r.tty != nil {
			r.tty.resumed(r.group.id)
		}
	case syscall.SIGTERM:
		if now := time.Now(); !r.term.IsZero() && now.Sub(r.term) < secondTerm {
			r.say("told to end a second time; the command is killed")
			s = syscall.SIGKILL
		} else {
			r.term = now
		}
	}
	r.group.signal(s)
	if s == syscall.SIGHUP || s == syscall.SIGTERM {
		r.group.signal(syscall.SIGCONT) // a stopped process does not get it otherwise
	}
}

// stop stops this process, as the command has been, if it is a job of a shell that can continue it. The guard goes on.
// It takes SIGSTOP: the Go runtime keeps its handler of SIGTSTP once that has been subscribed to.
func (r *run) stop() {
	if r.tty != nil {
		r.tty.takeBack(r.group.id)
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
