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

// asStageEnv makes this test binary be the stage instead of testing it.
const asStageEnv = "HOLDFAST_TEST_AS_STAGE"

// patience bounds the life of a stage.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	if os.Getenv(asStageEnv) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// event is a line of the output: what a process, or the director, has said.
type event struct{ who, text string }

// stageRun is one run of a stage, which has ended.
type stageRun struct {
	status int
	events []event
	stderr string
	t      *testing.T
}

var eventLine = regexp.MustCompile(`^ *\d+\.\d{3}s  (\S+) +(.*)$`)

// play runs the scenario, with its flags, on a real redis-server and requires that it leaves no key there, and no process.
func play(t *testing.T, scenario string) *stageRun {
	t.Helper()
	server := redistest.Start(t)
	run := perform(t, append(strings.Fields(scenario), "--redis", "redis://:"+server.Password()+"@"+server.Addr()+"/0")...)
	server.RequireNoKeys(t)
	for _, e := range run.events {
		if strings.Contains(e.text, server.Password()) {
			t.Errorf("the output has the password: %q", e.text)
		}
	}
	return run
}

// perform runs the stage with these arguments.
func perform(t *testing.T, args ...string) *stageRun {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), asStageEnv+"=1")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timeout := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer timeout.Stop()
	err = cmd.Wait() // for all processes: they share stderr
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("run %q: %v", args, err)
	}
	t.Logf("%q: %v\n%s%s", args, cmd.ProcessState, &stdout, &stderr)
	run := &stageRun{status: cmd.ProcessState.ExitCode(), stderr: stderr.String(), t: t}
	for l := range strings.Lines(stdout.String()) {
		if m := eventLine.FindStringSubmatch(strings.TrimSuffix(l, "\n")); m != nil {
			run.events = append(run.events, event{m[1], m[2]})
		}
	}
	return run
}

// logLine is one of Holdfast's: programs that name no logger say so when they lose a lease, as some are meant to.
var logLine = regexp.MustCompile(`(?m)^[0-9/]+ [0-9:]+ (WARN|INFO) holdfast: .*\n`)

// wantRight requires that the director found the outcome right.
func (r *stageRun) wantRight() {
	r.t.Helper()
	if r.status != 0 || logLine.ReplaceAllString(r.stderr, "") != "" {
		r.t.Errorf("status %d, stderr %q, want 0 and nothing", r.status, r.stderr)
	}
}

// wantWrong requires that the director found the outcome wrong, and why.
func (r *stageRun) wantWrong(why string) {
	r.t.Helper()
	if r.status != 1 || !strings.Contains(r.stderr, "WRONG") || !strings.Contains(r.stderr, why) {
		r.t.Errorf("status %d, stderr %q, want 1 and %q", r.status, r.stderr, why)
	}
}

// order requires events in this order; each is "who: text". It is for events of one process, and for those that the director
// waits for: lines of two processes can change places on their way.
func (r *stageRun) order(events ...string) {
	r.t.Helper()
	at := 0
	for _, e := range events {
		who, text, _ := strings.Cut(e, ": ")
		for at < len(r.events) && (r.events[at].who != who || !strings.HasPrefix(r.events[at].text, text)) {
			at++
		}
		if at == len(r.events) {
			r.t.Fatalf("%q does not come, or comes too early", e)
		}
	}
}

// find returns what pattern captures in the texts of all processes, in order.
func (r *stageRun) find(pattern string) string {
	var found []string
	p := regexp.MustCompile(pattern)
	for _, e := range r.events {
		if m := p.FindStringSubmatch(e.text); m != nil {
			found = append(found, m[1])
		}
	}
	return strings.Join(found, " ")
}

// wantGrowing requires that the numbers that pattern finds grow.
func (r *stageRun) wantGrowing(pattern string) {
	r.t.Helper()
	last := 0
	for _, number := range strings.Fields(r.find(pattern)) {
		n, err := strconv.Atoi(number)
		if err != nil || n <= last {
			r.t.Errorf("%s: %s after %d, want them to grow", pattern, number, last)
		}
		last = n
	}
}

func TestStage_BringsItsOwnServer(t *testing.T) {
	t.Parallel()
	run := perform(t, "fenced-writer")
	run.wantRight()
	run.order("-: with Holdfast, on an embedded server", "-: right")
}

func TestStage_SaysWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args   string
		status int
		want   string
	}{
		{"", 2, "usage: stage downloads|fenced-writer|flash-sale|"},
		{"flash-sale --what", 2, "not defined"},
		{"flash-sale --redis redis://:secret@127.0.0.1:1/0", 1, "no usable Redis at 127.0.0.1:1"},
		{"flash-sale --redis redis://:secret@127.0.0.1:port/0", 1, "--redis: invalid port"},
	} {
		run := perform(t, strings.Fields(tt.args)...)
		if run.status != tt.status || !strings.Contains(run.stderr, tt.want) || strings.Contains(run.stderr, "secret") {
			t.Errorf("%q: status %d, stderr %q, want %d and %q", tt.args, run.status, run.stderr, tt.status, tt.want)
		}
	}
}
