package supervisor

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// newGroup gives the command a process group of its own. If both the supervisor and the guard are killed at one
// moment, Linux sends the command TERM; what the command has started is not told then.
func newGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// dieWith has Linux send this process TERM when the parent's thread ends, also after execve. It reports whether the
// parent is alive. The calling goroutine must be locked to its thread, and call execve from it: the setting is the thread's.
func dieWith(parent int) bool {
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGTERM), 0, 0, 0)
	return unix.Getppid() == parent
}

// adoptOrphans makes this process the parent of what the command leaves behind, so that it learns of their end even in
// a container whose first process waits for no child.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }
