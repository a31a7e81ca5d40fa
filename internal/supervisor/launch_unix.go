//go:build unix

package supervisor

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// launcher is the supervisor's end of the process that becomes the command. It belongs to the goroutine of Run.
type launcher struct {
	pid     int
	gate    *os.File     // nil: it has been opened or given up
	running <-chan error // gets one: nil if the process has become the command or was ended. nil: it has been received
}

// startLauncher starts the process; it waits at the gate. The process gets two pipes under the numbers that they have
// here: the command's own open files keep their flags.
func startLauncher(c *Command) (*launcher, error) {
	cmd, err := c.Launcher()
	if err != nil {
		return nil, err
	}
	gate, opener, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer gate.Close()
	failures, failure, err := os.Pipe()
	if err != nil {
		_ = opener.Close()
		return nil, err
	}
	defer failure.Close()
	for _, f := range []*os.File{gate, failure} { // nothing else is started before they are closed here
		if _, err = unix.FcntlInt(f.Fd(), unix.F_SETFD, 0); err != nil {
			break
		}
	}
	if err == nil {
		cmd.Args = append(cmd.Args, fmt.Sprint(gate.Fd()), fmt.Sprint(failure.Fd()), strconv.Itoa(os.Getpid()), c.Path)
		cmd.Args = append(cmd.Args, c.Args...)
		cmd.Env, cmd.SysProcAttr = c.Env, newGroup()
		if c.Stdin != nil { // a nil *os.File is not a nil io.Reader
			cmd.Stdin = c.Stdin
		}
		if c.Stdout != nil {
			cmd.Stdout = c.Stdout
		}
		if c.Stderr != nil {
			cmd.Stderr = c.Stderr
		}
		err = cmd.Start()
	}
	if err != nil {
		_ = opener.Close()
		_ = failures.Close()
		if errors.Is(err, unix.E2BIG) {
			return nil, &NotStarted{err}
		}
		return nil, fmt.Errorf("start the launcher: %w", err)
	}
	pid := cmd.Process.Pid
	_ = cmd.Process.Release() // states are waited for by wait4, which also tells of stops
	running := make(chan error, 1)
	go func() { // ends with the launcher: when it becomes the command, or exits
		defer failures.Close()
		text, _ := io.ReadAll(failures)
		running <- execError(c.Path, string(text))
	}()
	return &launcher{pid: pid, gate: opener, running: running}, nil
}

// execError returns the error of execve that the launcher has reported.
func execError(path, text string) error {
	number, err := strconv.Atoi(text)
	if err != nil {
		return nil // nothing was reported
	}
	return &fs.PathError{Op: "exec", Path: path, Err: syscall.Errno(number)}
}

// open lets the process become the command.
func (l *launcher) open() {
	_, _ = l.gate.Write([]byte{1}) // it fails only if the process has ended
	l.abandon()
}

// abandon has a process at the gate exit.
func (l *launcher) abandon() {
	_ = l.gate.Close()
	l.gate = nil
}

// launchFailed is the exit status of the launcher if it has not become the command. The supervisor knows why.
const launchFailed = 1

// Launch is the launcher's process. It waits until one byte comes through gate, and becomes the program path then. It
// returns an exit status if gate ends before, which means that the supervisor is dead, or if execve fails: it writes
// the number of that error to failure. Both are open files. parent is the supervisor's process id.
func Launch(gate, failure, parent int, path string, argv []string) int {
	runtime.LockOSThread()
	unix.CloseOnExec(failure)
	if !dieWith(parent) {
		return launchFailed
	}
	opened := os.NewFile(uintptr(gate), "gate")
	if n, _ := opened.Read(make([]byte, 1)); n == 0 {
		return launchFailed
	}
	_ = opened.Close()
	err := syscall.Exec(path, argv, os.Environ())
	if number, ok := err.(syscall.Errno); ok {
		_, _ = os.NewFile(uintptr(failure), "failure").WriteString(strconv.Itoa(int(number)))
	}
	return launchFailed
}
