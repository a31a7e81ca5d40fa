package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// asCommandEnv makes this test binary be the command instead of testing it, and so do
// the processes that it starts: the tests run real processes, with the race detector
// if there is one.
const asCommandEnv = "HOLDFAST_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommandEnv) != "" {
		main()
	}
	os.Exit(m.Run())
}

// patience bounds the life of every process.
const patience = time.Minute

// invocation is one run of the command.
type invocation struct {
	*exec.Cmd
	stdout, stderr bytes.Buffer // to be read when it has ended
}

func newInvocation(t *testing.T, args ...string) *invocation {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	i := &invocation{Cmd: exec.Command(exe, args...)}
	i.Env = append(os.Environ(), asCommandEnv+"=1", "GORACE=atexit_sleep_ms=10 "+os.Getenv("GORACE"))
	i.Cmd.Stdout, i.Cmd.Stderr = &i.stdout, &i.stderr
	return i
}

// wait returns the exit status, -1 if a signal ended the process.
func (i *invocation) wait(t *testing.T) int {
	t.Helper()
	timeout := time.AfterFunc(patience, func() { _ = i.Process.Kill() })
	defer timeout.Stop()
	err := i.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("run %q: %v", i.Args[1:], err)
	}
	t.Logf("%q: %v\n%s%s", i.Args[1:], i.ProcessState, &i.stdout, &i.stderr)
	return i.ProcessState.ExitCode()
}

// exits waits for the end, and checks the status and that stderr has the texts.
func (i *invocation) exits(t *testing.T, status int, says ...string) {
	t.Helper()
	if got := i.wait(t); got != status {
		t.Errorf("%q: exit status %d, want %d", i.Args[1:], got, status)
	}
	for _, text := range says {
		if !strings.Contains(i.stderr.String(), text) {
			t.Errorf("%q: stderr is %q, want %q", i.Args[1:], &i.stderr, text)
		}
	}
}

// prints is exits that checks stdout.
func (i *invocation) prints(t *testing.T, status int, stdout string) {
	t.Helper()
	if i.exits(t, status); i.stdout.String() != stdout {
		t.Errorf("%q: stdout is %q, want %q", i.Args[1:], &i.stdout, stdout)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// invoke runs the command and returns its exit status and output.
func invoke(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	i := newInvocation(t, args...)
	must(t, i.Start())
	status = i.wait(t)
	return status, i.stdout.String(), i.stderr.String()
}

// saleLine is a line of the table: sale, phone, buyer, process, waited, left.
var saleLine = regexp.MustCompile(`(?m)^ +\d+ +\d+ +\d+ +\d+ +\S+ +\d+( +sold already!)?$`)

// wantSale checks that so many phones were sold. Whether each was sold once, and in its order, the demo judges: TestDemo_SaysWhatIsWrong.
func wantSale(t *testing.T, stdout string, phones int) {
	t.Helper()
	redistest.Want(t, len(saleLine.FindAllString(stdout, -1)), phones, "%d sales, want %d")
	for _, want := range []string{"they agree", "never fell below zero", "waits for the lock", "Redis commands per acquisition"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q", want)
		}
	}
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	must(t, err)
	return n
}
