package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// console is a terminal and the program that runs on it, as its session's leader.
type console struct {
	*exec.Cmd
	master *os.File
	read   chan struct{} // closed when the reading goroutine has ended

	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

// openConsole runs the program on a new terminal.
func openConsole(t *testing.T, env []string, program string, args ...string) *console {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	must(t, err)
	master := os.NewFile(uintptr(fd), "/dev/ptmx") // its Close ends a Read, since it does not block
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 120})
	}
	must(t, err)
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	must(t, err)
	defer slave.Close()
	c := &console{Cmd: exec.Command(program, args...), master: master, read: make(chan struct{})}
	c.Env = append(newInvocation(t).Env, env...)
	c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(t, c.Start())
	go func() { // ends when no process has the terminal any more
		defer close(c.read)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			c.mu.Lock()
			c.text.Write(buf[:n])
			c.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		_ = master.Close()
		<-c.read
		if t.Failed() {
			t.Logf("terminal:\n%s", c.shown())
		}
	})
	return c
}

func (c *console) shown() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// press types keys.
func (c *console) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := c.master.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// await waits until the terminal shows the text n times.
func (c *console) await(t *testing.T, text string, n int) {
	t.Helper()
	redistest.Eventually(t, patience, fmt.Sprintf("%q, %d times", text, n), func() bool { return strings.Count(c.shown(), text) >= n })
}

// openShell runs an interactive shell with holdfast in its path.
func openShell(t *testing.T, srv *redistest.Server) *console {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	dir := t.TempDir()
	must(t, os.Symlink(exe, filepath.Join(dir, "holdfast")))
	c := openConsole(t, []string{"HOLDFAST_REDIS=" + urlOf(srv), "PATH=" + dir + ":" + os.Getenv("PATH"), "PS1=ready> ", "HISTFILE="},
		"bash", "--norc", "--noprofile", "--noediting", "-i")
	c.await(t, "ready> ", 1)
	return c
}

// At a terminal the command reads from it, and keys and the shell's jobs work as without holdfast.
func TestRun_AtATerminal(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	held := func(name string) bool { return srv.Admin().Exists(t.Context(), name).Val() == 1 }

	t.Run("input", func(t *testing.T) {
		t.Parallel()
		c := openShell(t, srv)
		c.press(t, "holdfast run input -- sh -c 'read x; echo got-$x'; echo status-$?\n")
		redistest.Eventually(t, patience, "it is held", func() bool { return held("input") })
		c.press(t, "words\n")
		c.await(t, "got-words", 1)
		c.await(t, "status-0", 1)
	})
	t.Run("input at once", func(t *testing.T) {
		t.Parallel()
		c := openShell(t, srv)
		// A command that is stopped because it reads before it has the terminal loses the stop of a key that is pressed then.
		c.press(t, "for i in 1 2 3 4 5 6 7 8; do holdfast run early -- sh -c 'read -r _ _ _ _ _ _ _ has _ </proc/self/stat; echo has-$(($$ == has))'; done\n")
		c.await(t, "has-1", 8)
	})
	t.Run("pipeline", func(t *testing.T) {
		t.Parallel()
		c := openShell(t, srv)
		c.press(t, "holdfast run pipe -- echo through | (read x; read y </dev/tty; echo $x-$y)\n")
		redistest.Eventually(t, patience, "it was held", func() bool { return srv.CommandCalls("evalsha", "eval") >= 2 })
		c.press(t, "typed\n")
		c.await(t, "through-typed", 1)
	})
	t.Run("a command at the head of a pipeline asks for the terminal", func(t *testing.T) {
		t.Parallel()
		c := openShell(t, srv)
		c.press(t, "holdfast run head -- sh -c 'read x; echo got-$x' | cat\n")
		redistest.Eventually(t, patience, "it is held", func() bool { return held("head") })
		c.press(t, "words\n")
		c.await(t, "got-words", 1)
		c.await(t, "ready> ", 2)
	})
	t.Run("interrupt", func(t *testing.T) {
		t.Parallel()
		c := openShell(t, srv)
		// A shell that is interrupted just before it starts another process waits until that ends, so it becomes that process.
		c.press(t, "holdfast run int -- sh -c 'echo be''gun; exec sleep 1000'; echo status-$?\n")
		c.await(t, "begun", 1)
		c.press(t, "\x03")
		c.press(t, "echo status-$?\n") // bash drops the rest of a line that was interrupted
		c.await(t, "status-130", 1)
		redistest.Eventually(t, patience, "it is free", func() bool { return !held("int") })
	})
	t.Run("interrupt of a script", func(t *testing.T) {
		t.Parallel()
		for name, begun := range map[string]string{"script": "begun", "wait": ""} {
			if name == "wait" {
				hold(t, srv, name)
			}
			c := openShell(t, srv)
			c.press(t, `bash -c 'holdfast run `+name+` -- sh -c "echo be\gun; exec sleep 1000"; echo ne""xt'`+"\n")
			c.await(t, begun, 1)
			redistest.Eventually(t, patience, "it runs or waits", func() bool {
				return held(name) && (begun != "" || srv.Admin().LLen(t.Context(), "redisson_lock_queue:{"+name+"}").Val() == 1)
			})
			c.press(t, "\x03")
			c.press(t, "echo status-$?\n")
			c.await(t, "status-130", 1)
			if strings.Contains(c.shown(), "next") {
				t.Errorf("%s: the script went on", name)
			}
		}
	})
	t.Run("suspend and resume", func(t *testing.T) {
		t.Parallel()
		c := openShell(t, srv)
		c.press(t, "holdfast run job -- sh -c 'echo be''gun; read x; echo got-$x'\n")
		c.await(t, "begun", 1)
		c.press(t, "\x1a")
		c.await(t, "Stopped", 1)
		if !held("job") {
			t.Error("the lock is not held while the command is suspended")
		}
		c.press(t, "fg\n")
		c.await(t, "holdfast run job -- ", 3) // typed, stopped, resumed
		c.press(t, "words\n")
		c.await(t, "got-words", 1)
		redistest.Eventually(t, patience, "it is free", func() bool { return !held("job") })
	})
	t.Run("suspended beyond the lease", func(t *testing.T) {
		t.Parallel()
		c := openShell(t, srv)
		file := filepath.Join(t.TempDir(), "pid")
		// The guard must get a processor within the lease's margin, 120 ms. The shell starts no process: one that is stopped
		// just before its child becomes another program waits for that, and is not seen to be stopped.
		c.press(t, "holdfast run late --lease=6s --grace=500ms -- sh -c 'echo $$ >"+file+"; read x; echo sur''vived'\n")
		pid := number(t, strings.TrimSpace(awaitFile(t, file)))
		c.press(t, "\x1a")
		c.await(t, "Stopped", 1)
		// The guard is in no job: it ends what is suspended.
		if _, err := other(t, srv).Mutex("late").Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && !strings.Contains(string(state), ") Z ") {
			t.Errorf("the lock is another's, and the command is there: %s", state)
		}
		c.press(t, "fg; echo status-$?\n")
		c.await(t, "status-121", 1)
		if strings.Contains(c.shown(), "survived") {
			t.Error("the command ran on")
		}
	})
	t.Run("in the background", func(t *testing.T) {
		t.Parallel()
		c := openShell(t, srv)
		c.press(t, "holdfast run back -- sh -c 'read x; echo got-$x' &\n")
		redistest.Eventually(t, patience, "it is held", func() bool { return held("back") })
		redistest.Eventually(t, patience, "the shell knows of a stopped job", func() bool {
			c.press(t, "jobs\n")
			return strings.Contains(c.shown(), "Stopped")
		})
		c.press(t, "fg\n")
		c.press(t, "words\n")
		c.await(t, "got-words", 1)
	})
}
