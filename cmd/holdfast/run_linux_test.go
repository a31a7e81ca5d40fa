package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// guardOfRun returns the process id of the guard.
func guardOfRun(t *testing.T, run *invocation) int {
	t.Helper()
	pid := 0
	redistest.Eventually(t, patience, "there is a guard", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", run.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, thread := range threads {
			text, _ := os.ReadFile(thread) // the thread may have ended
			for _, p := range strings.Fields(string(text)) {
				if line, _ := os.ReadFile("/proc/" + p + "/cmdline"); strings.Contains(string(line), guardName) {
					pid = number(t, p)
				}
			}
		}
		return pid != 0
	})
	return pid
}

// The command runs on if the guard dies, and the process that holds the lock enforces the lease alone.
func TestRun_WithoutItsGuard(t *testing.T) {
	t.Parallel()
	s := newScenario(t, "stubborn")
	guard := guardOfRun(t, s.run)
	if err := syscall.Kill(guard, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, guard)
	s.proxy.BlackHole(true)
	s.wantDeadBeforeTheNext(t)
	if status := s.run.wait(t); status != 121 {
		t.Errorf("exit status %d, want 121", status)
	}
	if !strings.Contains(s.run.stderr.String(), "the guard has died") {
		t.Errorf("stderr: %q", &s.run.stderr)
	}
}

// If both are killed at one moment, Linux tells the command to end.
func TestRun_KilledWithItsGuard(t *testing.T) {
	t.Parallel()
	s := newScenario(t, "polite")
	guard := guardOfRun(t, s.run)
	for _, pid := range []int{guard, s.run.Process.Pid} {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	for _, pid := range []int{guard, s.run.Process.Pid} {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	redistest.Eventually(t, patience, "the command is told to end", func() bool {
		return strings.HasSuffix(awaitFile(t, s.file), "told\n")
	})
	s.run.wait(t)
}
