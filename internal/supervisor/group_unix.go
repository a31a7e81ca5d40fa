//go:build unix

package supervisor

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// group is the process group of a command.
type group struct{ id int }

// signal sends s to every process of the group. That it is empty is found out elsewhere.
func (g *group) signal(s syscall.Signal) { _ = syscall.Kill(-g.id, s) }

// end tells the group to end, and wakes what is stopped: a stopped process does not get TERM.
func (g *group) end() {
	g.signal(syscall.SIGTERM)
	g.signal(syscall.SIGCONT)
}

func (g *group) kill() { g.signal(syscall.SIGKILL) }

// empty reports whether no process is left, not even one that has exited and was not waited for.
func (g *group) empty() bool { return errors.Is(syscall.Kill(-g.id, 0), syscall.ESRCH) }

// reap waits for what the command left behind and has exited: see adoptOrphans.
func (g *group) reap() {
	for {
		if pid, err := unix.Wait4(-g.id, nil, unix.WNOHANG, nil); pid <= 0 && err != unix.EINTR {
			return
		}
	}
}
