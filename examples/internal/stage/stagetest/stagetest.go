// Package stagetest plays scenarios in tests: as they are, in real processes, on a redis-server of the test.
package stagetest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// asStageEnv makes a test binary be the stage instead of testing it.
const asStageEnv = "HOLDFAST_TEST_AS_STAGE"

// patience bounds the life of a stage.
const patience = 2 * time.Minute

// Main is what TestMain of a stage calls, with the main function of the stage.
func Main(m *testing.M, main func()) {
	if os.Getenv(asStageEnv) != "" {
		main()
	}
	os.Exit(m.Run())
}

// Event is a line of the output: what a process, or the director, has said.
type Event struct{ Who, Text string }

// Run is one run of a stage, which has ended.
type Run struct {
	Status int
	Events []Event
	Stderr string
	t      *testing.T
}

var line = regexp.MustCompile(`^ *\d+\.\d{3}s  (\S+) +(.*)$`)

// Play runs the stage on a real redis-server and requires that it leaves no key there, and no process.
func Play(t *testing.T, args ...string) *Run {
	t.Helper()
	server := redistest.Start(t)
	run := Command(t, append(args, "--redis", "redis://:"+server.Password()+"@"+server.Addr()+"/0")...)
	server.RequireNoKeys(t)
	for _, e := range run.Events {
		if strings.Contains(e.Text, server.Password()) {
			t.Errorf("the output has the password: %q", e.Text)
		}
	}
	return run
}

// Command runs the stage with these arguments.
func Command(t *testing.T, args ...string) *Run {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := stage(t, args)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timeout := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer timeout.Stop()
	err := cmd.Wait() // for all processes: they share stderr
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("run %q: %v", args, err)
	}
	t.Logf("%q: %v\n%s%s", args, cmd.ProcessState, &stdout, &stderr)
	run := &Run{Status: cmd.ProcessState.ExitCode(), Stderr: stderr.String(), t: t}
	for l := range strings.Lines(stdout.String()) {
		if m := line.FindStringSubmatch(strings.TrimSuffix(l, "\n")); m != nil {
			run.Events = append(run.Events, Event{m[1], m[2]})
		}
	}
	return run
}

func stage(t *testing.T, args []string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), asStageEnv+"=1", "GORACE=atexit_sleep_ms=10 "+os.Getenv("GORACE"))
	return cmd
}

// logLine is one of Holdfast's: programs that name no logger say so when they lose a lease, as some are meant to.
var logLine = regexp.MustCompile(`(?m)^[0-9/]+ [0-9:]+ (WARN|INFO) holdfast: .*\n`)

// WantRight requires that the director found the outcome right.
func (r *Run) WantRight() {
	r.t.Helper()
	if r.Status != 0 || logLine.ReplaceAllString(r.Stderr, "") != "" {
		r.t.Errorf("status %d, stderr %q, want 0 and nothing", r.Status, r.Stderr)
	}
}

// WantWrong requires that the director found the outcome wrong, and why.
func (r *Run) WantWrong(why string) {
	r.t.Helper()
	if r.Status != 1 || !strings.Contains(r.Stderr, "WRONG") || !strings.Contains(r.Stderr, why) {
		r.t.Errorf("status %d, stderr %q, want 1 and %q", r.Status, r.Stderr, why)
	}
}

// Index returns where the first event like that is, and fails the test if there is none.
func (r *Run) Index(who, text string) int {
	r.t.Helper()
	for i, e := range r.Events {
		if e.Who == who && strings.HasPrefix(e.Text, text) {
			return i
		}
	}
	r.t.Fatalf("%s never says %q", who, text)
	return -1
}

// Order requires events in this order; each is "who: text". It is for events of one process, and for those that the director
// waits for: lines of two processes can change places on their way.
func (r *Run) Order(events ...string) {
	r.t.Helper()
	last := -1
	for _, e := range events {
		who, text, _ := strings.Cut(e, ": ")
		i := r.Index(who, text)
		if i <= last {
			r.t.Errorf("%q comes too early, at line %d", e, i+1)
		}
		last = i
	}
}

// Find returns what pattern captures in the texts of all processes, in order.
func (r *Run) Find(pattern string) (found []string) {
	p := regexp.MustCompile(pattern)
	for _, e := range r.Events {
		if m := p.FindStringSubmatch(e.Text); m != nil {
			found = append(found, m[1])
		}
	}
	return found
}
