//go:build unix

package supervisor

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal is the controlling terminal of this process. One process group has it, the foreground: it reads from it,
// and gets the signals of its keys. The supervisor plays the shell's part between its own group and the command's.
// It belongs to the goroutine of Run, or of Guard.
type terminal struct {
	fd    int
	own   int  // the supervisor's group
	eager bool // the command has the terminal from the beginning, and not only when it asks for it
	given bool // the command's group has had it
}

// openTerminal returns nil if stdin is not the controlling terminal; own is the supervisor's process group. In a pipeline
// the command gets the terminal only when it asks for it, so that a pager behind it can have it.
func openTerminal(stdin, stdout *os.File, own int) *terminal {
	if stdin == nil {
		return nil
	}
	t := &terminal{fd: int(stdin.Fd()), own: own}
	if t.foreground() < 0 {
		return nil
	}
	t.eager = stdout != nil && foreground(int(stdout.Fd())) >= 0
	return t
}

// foreground returns the group that has the terminal, -1 if fd is none of this session.
func foreground(fd int) int {
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	if err != nil {
		return -1
	}
	return group
}

func (t *terminal) foreground() int { return foreground(t.fd) }

func (t *terminal) ours() bool { return t.foreground() == t.own }

func (t *terminal) give(group int) {
	t.given = true
	t.set(group)
}

// set needs SIGTTOU to be ignored: the caller may be in the background.
func (t *terminal) set(group int) { _ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group) }

// started is told of a new command, which may have got the terminal: see start.
func (t *terminal) started(group int) { t.given = t.foreground() == group }

// wanted reports whether the command was stopped because it asked for a terminal that this process can give, or has
// given meanwhile.
func (t *terminal) wanted(stopped syscall.Signal, group int) bool {
	return (stopped == syscall.SIGTTIN || stopped == syscall.SIGTTOU) && (t.ours() || t.foreground() == group)
}

// takeBack makes this process's group the foreground again, if the command's is.
func (t *terminal) takeBack(group int) {
	if t.foreground() == group {
		t.set(t.own)
	}
}

// resumed is called when the shell has continued this process, perhaps in the foreground.
func (t *terminal) resumed(group int) {
	if (t.eager || t.given) && t.ours() {
		t.give(group)
	}
}
