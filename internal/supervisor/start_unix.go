//go:build unix

package supervisor

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

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
