package stage_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/stage"
	"github.com/holdfast-go/holdfast/examples/internal/stage/stagetest"
)

func TestMain(m *testing.M) {
	const program = "examples/internal/stage/testdata/program"
	stagetest.Main(m, func() {
		stage.Main(stage.Scenario{
			Name:    "scenario",
			Program: program,
			Modes: map[string]stage.Mode{
				"ends-early": {}, "fails": {}, "wrong": {}, "exits": {}, "kills": {}, "talks": {}, "drops": {},
				"missing": {Program: program + "/nothing"},
			},
			Direct: direct,
		})
	})
}

func direct(ctx context.Context, d *stage.Director) error {
	d.Must(d.Redis.Set(ctx, d.Key("left"), 1, 0).Err()) // for the stage to remove
	d.Start("forgotten", "wait").Await("waits")
	p := d.StartUntil("set "+d.Key("middle"), "worker", "work")
	p.AwaitRequest()
	n, err := d.Redis.Exists(ctx, d.Key("beginning"), d.Key("middle")).Result()
	d.Must(err)
	d.Check(n == 1, "%d keys are set before the one that is held back", n)
	switch d.Mode {
	case "kills":
		p.Kill("in the middle")
		p.Wait()
	case "drops":
		p.Kill("in the middle")
		n, err := d.Redis.Exists(ctx, d.Key("middle")).Result()
		d.Must(err)
		d.Check(n == 0, "the request of a process that was killed has arrived")
		return nil
	case "ends-early":
		d.StartUntil("never", "early", "fail").AwaitRequest()
	case "talks":
		p.Pause("in the middle")
		for every := time.NewTicker(10 * time.Millisecond); ; {
			d.Say("still here")
			select {
			case <-every.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	p.LetPass()
	if d.Mode == "exits" {
		p.Await("what it never says")
	}
	p.Wait()
	d.Check(d.Mode != "wrong", "%s", "so it is")
	if d.Mode == "fails" {
		return errors.New("direct failed")
	}
	return nil
}

func TestScenario_IsPlayed(t *testing.T) {
	t.Parallel()
	run := stagetest.Play(t)
	run.WantRight()
	run.Order("-: with Holdfast, on the Redis of --redis", "forgotten: waits", "worker: goes on", "-: right")
}

func TestScenario_BringsItsOwnServer(t *testing.T) {
	t.Parallel()
	run := stagetest.Command(t)
	run.WantRight()
	run.Order("-: with Holdfast, on an embedded server", "-: right")
}

func TestScenario_EndsAndSaysWhy(t *testing.T) {
	t.Parallel()
	stagetest.Play(t, "--wrong").WantWrong("so it is")
	stagetest.Play(t, "--drops").WantRight()
	for _, tt := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"--fails"}, 1, "direct failed"},
		{[]string{"--ends-early"}, 1, `early ended before it sent "never": exit status 1`},
		{[]string{"--missing"}, 1, "go build examples/internal/stage/testdata/program/nothing"},
		{[]string{"--kills"}, 1, "worker: signal: killed"},
		{[]string{"--exits"}, 1, `worker ended before it said "what it never says"`},
		{[]string{"--wrong", "--fails"}, 2, "exclude each other"},
		{[]string{"--what"}, 2, "not defined"},
		{[]string{"what"}, 2, `unexpected argument "what"`},
		{[]string{"--redis", "redis://:secret@127.0.0.1:1/0"}, 1, "no usable Redis at 127.0.0.1:1"},
		{[]string{"--redis", "redis://:secret@127.0.0.1:port/0"}, 1, "--redis: invalid port"},
	} {
		run := stagetest.Command(t, tt.args...)
		if run.Status != tt.status || !strings.Contains(run.Stderr, tt.want) || strings.Contains(run.Stderr, "secret") {
			t.Errorf("%q: status %d, stderr %q, want %d and %q", tt.args, run.Status, run.Stderr, tt.status, tt.want)
		}
	}
}

// The stage cleans up after each of these ends, even behind a process that is paused.
func TestScenario_IsCutShort(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no such signals")
	}
	for name, end := range map[string]os.Signal{
		"interrupted": os.Interrupt, "terminal closed": syscall.SIGHUP, "output closed": nil,
	} {
		t.Run(name, func(t *testing.T) {
			if status := stagetest.Cut(t, "still here", end, "--talks"); status != 1 {
				t.Errorf("status %d, want 1", status)
			}
		})
	}
}
