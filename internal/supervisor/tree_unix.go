//go:build unix

package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// tree is a command and all that it has started. On Linux these are the processes below root, which is the command's
// parent and gets what they leave behind: see adoptOrphans. Elsewhere they are the command's process group.
type tree struct {
	root   int
	except []int // children of root that the command has not started
	group  int   // the command, which leads its group; 0: not started yet
}

// signal sends s to the command's process group, as a terminal does.
func (t *tree) signal(s syscall.Signal) error {
	if t.group == 0 {
		return nil
	}
	return syscall.Kill(-t.group, s)
}

// end tells all to end, and wakes what is stopped: a stopped process does not get TERM. It returns the processes that
// it may not signal.
func (t *tree) end() (denied []int) {
	for _, pid := range t.targets() {
		if send(pid, syscall.SIGTERM) {
			denied = append(denied, pid)
		}
		send(pid, syscall.SIGCONT)
	}
	return denied
}

// freezes bounds the passes of one kill. Its callers kill again until nothing is left.
const freezes = 100

// kill kills all, and returns the processes that it may not signal. It stops them first, until a pass finds none that is
// new: a stopped process starts no other, and keeps its place under the limit of processes.
func (t *tree) kill() (denied []int) {
	stopped := make(map[int]bool)
	for range freezes {
		fresh := false
		for _, pid := range t.targets() {
			if !stopped[pid] {
				stopped[pid], fresh = true, true
				send(pid, syscall.SIGSTOP)
			}
		}
		if !fresh {
			break
		}
	}
	for _, pid := range t.targets() {
		if send(pid, syscall.SIGKILL) {
			denied = append(denied, pid)
		}
	}
	return denied
}

// send reports whether this process may not signal that one.
func send(pid int, s syscall.Signal) (denied bool) {
	return errors.Is(syscall.Kill(pid, s), syscall.EPERM)
}

// targets are what a signal to all goes to: processes, or a group as a negative number.
func (t *tree) targets() []int {
	if pids := t.members(); len(pids) > 0 || t.group == 0 {
		return pids
	}
	return []int{-t.group}
}

// members are the processes of the tree, where they can be found out.
func (t *tree) members() []int { return descendants(t.root, t.except) }

// empty reports whether nothing is left, not even a process that has exited and was not waited for. Only the parent of
// the command may ask, after reap.
func (t *tree) empty(childless bool) bool {
	return errors.Is(t.signal(0), syscall.ESRCH) && (childless || len(t.members()) == 0)
}

// reap waits for the children that have exited, the command and what it left behind, and tells of each. It reports
// whether this process has no child any more.
func reap(tell func(pid int, s unix.WaitStatus)) (childless bool) {
	for {
		var s unix.WaitStatus
		switch pid, err := unix.Wait4(-1, &s, unix.WNOHANG|unix.WUNTRACED, nil); {
		case err == unix.EINTR:
		case err != nil:
			return true
		case pid == 0:
			return false
		default:
			tell(pid, s)
		}
	}
}

// denial says of processes that they could not be signalled, and what to do.
func denial(what string, denied []int) string {
	slices.Sort(denied)
	who := make([]string, 0, len(denied))
	for _, pid := range denied[:min(len(denied), 3)] {
		who = append(who, strings.TrimPrefix(fmt.Sprint(pid), "-"))
	}
	return fmt.Sprintf("process %s belongs to another user and cannot be %s (operation not permitted); run holdfast as that user, inside sudo",
		strings.Join(who, ", "), what)
}

// start starts the command in a process group of its own, and returns its process id. A program without a format that
// the kernel knows is run by sh, as shells do. If the group of the supervisor has the terminal, the command has it from
// its first instruction on: one that is stopped because it reads too early loses the stop of a key that is pressed then.
func start(c *Command, tty *terminal) (int, error) {
	attr := newGroup()
	if tty != nil && tty.eager && tty.ours() {
		attr.Foreground, attr.Ctty = true, tty.fd
	}
	pid, err := spawn(c.Path, c.Args, c, attr)
	if errors.Is(err, syscall.ENOEXEC) && isText(c.Path) {
		return spawn("/bin/sh", append([]string{"sh", c.Path}, c.Args[1:]...), c, attr)
	}
	return pid, err
}

// spawn starts a process with the streams and the environment of c. The caller waits for it by reap.
func spawn(path string, argv []string, c *Command, attr *syscall.SysProcAttr) (int, error) {
	cmd := &exec.Cmd{Path: path, Args: argv, Env: c.Env, SysProcAttr: attr}
	if c.Stdin != nil { // a nil *os.File is not a nil io.Reader
		cmd.Stdin = c.Stdin
	}
	if c.Stdout != nil {
		cmd.Stdout = c.Stdout
	}
	if c.Stderr != nil {
		cmd.Stderr = c.Stderr
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	pid := cmd.Process.Pid
	return pid, cmd.Process.Release()
}

// isText reports whether the file can be a script: as shells judge it, its beginning has no NUL.
func isText(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 256)
	n, err := io.ReadFull(f, head)
	return (err == nil || errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF) && !bytes.Contains(head[:n], []byte{0})
}

// reserveThreads has the Go runtime start the threads that it may need later, and which it keeps: it ends the process if
// it gets none because the command has used up the user's limit of processes.
func reserveThreads() {
	const threads = 8
	var locked, done sync.WaitGroup
	locked.Add(threads)
	for range threads {
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			locked.Done()
			locked.Wait()
		})
	}
	done.Wait()
}
