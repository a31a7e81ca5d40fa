package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Steps of real scripts leave the command's process group, and its session.
func init() {
	const work = `trap "" TERM; while :; do date +%s%N >>"$1"; sleep 0.01; done`
	for name, script := range map[string]string{
		"timeout": `timeout 60 sh -c '` + work + `' sh "$1"`,
		"daemon":  `(setsid env -i PATH="$PATH" sh -c '` + work + `' sh "$1" <&- >/dev/null 2>&1 &); sleep 1000`,
		"jobs":    `exec bash -c 'set -m; sh -c "$2" sh "$1" & wait' bash "$1" '` + work + `'`,
	} {
		leavers, writers[name] = append(leavers, name), script
	}
}

// children returns the command lines of the processes that it has started, by their ids.
func (i *invocation) children(t *testing.T) map[int]string {
	t.Helper()
	lines := make(map[int]string)
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", i.Process.Pid))
	must(t, err)
	for _, thread := range threads {
		pids, _ := os.ReadFile(thread) // the thread may have ended
		for _, pid := range strings.Fields(string(pids)) {
			line, _ := os.ReadFile("/proc/" + pid + "/cmdline")
			lines[number(t, pid)] = string(line)
		}
	}
	return lines
}

// guardOfRun returns the process id of the guard.
func guardOfRun(t *testing.T, run *invocation) (guard int) {
	t.Helper()
	redistest.Eventually(t, patience, "there is a guard", func() bool {
		for pid, line := range run.children(t) {
			if strings.Contains(line, guardName) {
				guard = pid
			}
		}
		return guard != 0
	})
	return guard
}

// The command runs on if the guard dies, and the process that holds the lock enforces the lease alone.
func TestRun_WithoutItsGuard(t *testing.T) {
	t.Parallel()
	s := newScenario(t, "stubborn")
	guard := guardOfRun(t, s.run)
	must(t, syscall.Kill(guard, syscall.SIGKILL))
	awaitGone(t, guard)
	s.proxy.BlackHole(true)
	s.wantDeadBeforeTheNext(t)
	s.run.exits(t, 121, "the guard has died")
}

// If both are killed at one moment, Linux tells the command to end.
func TestRun_KilledWithItsGuard(t *testing.T) {
	t.Parallel()
	s := newScenario(t, "polite")
	guard := guardOfRun(t, s.run)
	for _, pid := range []int{guard, s.run.Process.Pid} {
		must(t, syscall.Kill(pid, syscall.SIGSTOP))
	}
	for _, pid := range []int{guard, s.run.Process.Pid} {
		must(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	redistest.Eventually(t, patience, "the command is told to end", func() bool {
		return strings.HasSuffix(awaitFile(t, s.file), "told\n")
	})
	s.run.wait(t)
}

// What a command leaves behind is ended before the lock is free, wherever it has gone, and what that starts meanwhile.
func TestRun_EndsWhatHasLeftTheGroup(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]struct {
		script string
		status int
		signal syscall.Signal
	}{
		"exits":      {`(setsid sh -c "$2" sh "$1" &); until test -s "$1"; do :; done; exit 6`, 6, 0},
		"TERM":       {`timeout 60 sh -c "$2" sh "$1"`, 143, syscall.SIGTERM},
		"many forks": {`for i in 1 2 3 4 5 6 7 8; do (setsid sh -c 'trap "" TERM; while :; do (setsid sleep 0.05 &); sleep 0.01; done' &); done; sh -c "$2" sh "$1" & until test -s "$1"; do :; done; exit 7`, 7, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &scenario{srv: redistest.Start(t), name: "job", file: filepath.Join(t.TempDir(), "times")}
			s.run = start(t, urlOf(s.srv), "run", s.name, "--grace=300ms", "--", "sh", "-c", how.script, "sh", s.file,
				`trap "" TERM; while :; do date +%s%N >>"$1"; sleep 0.01; done`)
			awaitFile(t, s.file)
			if how.signal != 0 {
				must(t, s.run.Process.Signal(how.signal))
			}
			s.wantDeadBeforeTheNext(t)
			s.run.exits(t, how.status)
		})
	}
}

// Orphans are waited for at once: a command with many of them does not fill the table of processes.
func TestRun_LeavesNoZombies(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	i := start(t, urlOf(srv), "run", "job", "--", "bash", "-c", `for i in {1..50}; do (true &); done
		while grep -qs ") Z $PPID " /proc/[0-9]*/stat; do sleep 0.01; done; exit 3`)
	i.exits(t, 3)
}

// A command that has become another user cannot be signalled. That is said, and the lock is kept as long as it can be.
func TestRun_CommandOfAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can make a program that becomes root")
	}
	srv := redistest.Start(t)
	for name, how := range map[string]struct {
		do     func(t *testing.T, i *invocation)
		says   string
		status int
		held   int64
	}{
		"TERM": {func(t *testing.T, i *invocation) { _ = i.Process.Signal(syscall.SIGTERM) },
			"SIGTERM was not delivered: process ", 5, 1},
		"deleted": {func(t *testing.T, _ *invocation) { srv.Admin().Del(t.Context(), "deleted") },
			"the lock is gone: it was deleted, or the server has lost it; process ", 121, 0},
		"killed": {func(t *testing.T, i *invocation) { _ = i.Process.Kill() },
			"the process that holds the lock has died; process ", -1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, err := os.MkdirTemp("", "") // where that user may go
			must(t, err)
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			exe, end, said := filepath.Join(dir, "become"), filepath.Join(dir, "end"), filepath.Join(dir, "said")
			setpriv, err := exec.LookPath("setpriv")
			must(t, err)
			stderr, err := os.Create(said)
			if err = errors.Join(err, os.Chmod(dir, 0o755), copyFile(exe, setpriv, 0o755|os.ModeSetuid)); err != nil {
				t.Fatal(err)
			}
			defer stderr.Close()
			t.Cleanup(func() { _ = os.WriteFile(end, nil, 0o600) })
			i := newInvocation(t, "run", name, "--lease=3s", "--grace=300ms", "--", exe, "--reuid=0", "sh", "-c",
				`echo $$ >"$1/pid"; until test -e "$1/end"; do sleep 0.01; done; exit 5`, "sh", dir)
			i.Env, i.Cmd.Stderr = append(i.Env, "HOLDFAST_REDIS="+urlOf(srv)), stderr
			i.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			own := i.Path // in a folder of root's
			i.Path = filepath.Join(dir, "holdfast")
			must(t, errors.Join(copyFile(i.Path, own, 0o755), i.Start()))
			awaitFile(t, filepath.Join(dir, "pid"))
			how.do(t, i)
			redistest.Eventually(t, patience, how.says, func() bool {
				text, _ := os.ReadFile(said)
				return strings.Contains(string(text), how.says) && strings.Contains(string(text), "belongs to another user and cannot be ")
			})
			if held := srv.Admin().Exists(t.Context(), name).Val(); held != how.held {
				t.Errorf("the lock is held: %d, want %d", held, how.held)
			}
			must(t, os.WriteFile(end, nil, 0o600))
			i.exits(t, how.status)
			if text, _ := os.ReadFile(said); strings.Contains(string(text), "command is ") {
				t.Errorf("it says what is not so: %s", text)
			}
		})
	}
}

// copyFile makes a program with these rights. No process is started meanwhile: until it runs its own program it would have
// the file open for writing, and Linux runs no such file (golang/go#22315).
func copyFile(to, from string, rights os.FileMode) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return errors.Join(os.WriteFile(to, content, 0o600), os.Chmod(to, rights))
}
