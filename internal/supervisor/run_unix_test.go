//go:build unix

package supervisor

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// This test binary is also the processes of a run: its first argument names one of the roles below.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch args := os.Args[2:]; os.Args[1] {
		case "supervise":
			os.Exit(supervise(args))
		case "guard":
			in, _ := strconv.Atoi(args[0])
			out, _ := strconv.Atoi(args[1])
			os.Exit(Guard("job", testGrace, LossTerm, in, out, args[2], args[3:], func(string) {}))
		}
	}
	os.Exit(m.Run())
}

const (
	testLease = 1500 * time.Millisecond
	testGrace = 300 * time.Millisecond
)

// fixedLease ends at its deadline.
type fixedLease struct{ deadline time.Time }

func (l fixedLease) Deadline() time.Time   { return l.deadline }
func (l fixedLease) Done() <-chan struct{} { return nil }
func (l fixedLease) Err() error            { return nil }

// Steps of a start, in their order. The supervisor kills itself at one of them, as `kill -9` does.
const (
	stepBefore   = "there is no guard"
	stepGuard    = "the guard is there"
	stepRuns     = "runs as process"
	stepLater    = "" // a time after the guard is started
	neverReached = "never"
)

// supervise runs a command that ends at KILL only; it writes to the file args[2]. args[0] is the step at which this
// process kills itself, and args[1] how much later.
func supervise(args []string) int {
	after, err := time.ParseDuration(args[1])
	if err != nil {
		return 99
	}
	var once sync.Once
	die := func(step string) {
		if step != args[0] && !(args[0] != stepLater && strings.Contains(step, args[0])) {
			return
		}
		once.Do(func() {
			kill := func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }
			if after == 0 {
				kill()
				select {}
			}
			time.AfterFunc(after, kill)
		})
	}
	result, err := Run(fixedLease{time.Now().Add(testLease)}, &Command{
		Name: "job", Path: "/bin/sh", Args: []string{"sh", "-c", `trap '' TERM INT HUP; echo $$ >"$1"; while :; do sleep 0.01; done`, "sh", args[2]},
		Env: os.Environ(), Grace: testGrace, Loss: LossTerm, Stderr: os.Stderr, Interrupts: make(chan os.Signal, 64),
		Guard: func() (*exec.Cmd, error) {
			die(stepBefore)
			time.AfterFunc(0, func() { die(stepLater) })
			return exec.Command(os.Args[0], "guard"), nil
		},
		Explain: func(err error) string { return err.Error() },
		Say:     func(string) {}, Detail: die,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 98
	}
	return result.Status
}

// Whenever the supervisor is killed while it starts a command, no process is left after the lease, and the command has
// run only if the guard had a deadline.
func TestRun_KilledAtEachStep(t *testing.T) {
	t.Parallel()
	type moment struct {
		step  string
		after time.Duration
	}
	moments := []moment{{stepBefore, 0}, {stepGuard, 0}, {stepRuns, 0}}
	for after := 100 * time.Microsecond; after < 300*time.Millisecond; after *= 2 {
		moments = append(moments, moment{stepLater, after})
	}
	ran := 0
	for _, m := range moments {
		name := m.step
		if name == stepLater {
			name = "after " + m.after.String()
		}
		file := filepath.Join(t.TempDir(), "pid")
		begin := time.Now()
		status := superviseIn(t, m.step, m.after, file)
		text, err := os.ReadFile(file)
		if err == nil {
			ran++
		}
		if status != -1 {
			t.Errorf("%s: the supervisor was not killed: status %d", name, status)
		}
		t.Logf("%s: all ended after %v; ran: %q", name, time.Since(begin), text)
		switch m.step {
		case stepBefore, stepGuard: // the command has had no deadline
			if err == nil {
				t.Errorf("%s: the command has run", name)
			}
		}
	}
	if ran == 0 {
		t.Error("the command has never run")
	}
	if status := superviseIn(t, neverReached, 0, filepath.Join(t.TempDir(), "pid")); status != 128+int(syscall.SIGKILL) {
		t.Errorf("without a kill: status %d", status)
	}
}

// superviseIn runs supervise in a process of its own and returns its exit status, -1 if it was killed. It returns when
// the last of its processes has ended: all have the same pipe open.
func superviseIn(t *testing.T, step string, after time.Duration, file string) int {
	t.Helper()
	ends, alive, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer ends.Close()
	cmd := exec.Command(os.Args[0], "supervise", step, after.String(), file)
	cmd.Stderr, cmd.ExtraFiles = os.Stderr, []*os.File{alive}
	err = cmd.Start()
	_ = alive.Close()
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	_ = ends.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.ReadAll(ends); err != nil {
		t.Errorf("%s, %v: a process is left: %v", step, after, err)
		if text, err := os.ReadFile(file); err == nil {
			pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
	}
	return cmd.ProcessState.ExitCode()
}

// Copies of a TERM are one, as timeout(1) sends it to its child and to its group. A second one is for the impatient.
func TestTerms(t *testing.T) {
	var count terms
	begin := time.Now()
	for _, tt := range []struct {
		after time.Duration
		want  action
	}{{0, term}, {50 * time.Microsecond, nothing}, {oneTerm - 1, nothing}, {oneTerm, kill}, {secondTerm - 1, kill}, {secondTerm, term}, {secondTerm + 1, nothing}} {
		if got := count.step(begin.Add(tt.after)); got != tt.want {
			t.Errorf("after %v: %v, want %v", tt.after, got, tt.want)
		}
	}
}
