package example_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/example"
	"github.com/holdfast-go/holdfast/internal/example/exampletest"
)

func TestMain(m *testing.M) {
	exampletest.Main(m, func() {
		example.Main(example.Scenario{
			Name:   "scenario",
			Modes:  map[string]string{"ends-early": "", "fails": "", "wrong": "", "exits": "", "kills": "", "talks": ""},
			Direct: direct,
			Roles:  map[string]func(context.Context, *example.Worker) error{"role": role, "waiter": waiter},
		})
	})
}

func direct(ctx context.Context, d *example.Director) error {
	d.Must(d.Redis.Set(ctx, d.Key("left"), 1, 0).Err()) // for the stage to remove
	d.Start("waiter", "forgotten").Await("waits")
	p := d.StartUntil("middle", "role", "worker")
	p.AwaitStop()
	switch d.Mode {
	case "kills":
		p.Kill()
		p.Wait()
	case "talks":
		p.Pause()
		for every := time.NewTicker(10 * time.Millisecond); ; {
			d.Say("still here")
			select {
			case <-every.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	p.Tell("go on")
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

// waiter ends when its director has gone.
func waiter(ctx context.Context, w *example.Worker) error {
	w.Say("waits")
	<-ctx.Done()
	return nil
}

func role(_ context.Context, w *example.Worker) error {
	w.Here("beginning")
	w.Here("middle")
	w.Here("middle") // once is enough
	w.Say("goes\non")
	if w.Mode == "ends-early" {
		return errors.New("role failed")
	}
	return nil
}

func TestScenario_IsPlayed(t *testing.T) {
	t.Parallel()
	run := exampletest.Play(t)
	run.WantRight()
	run.Order("-: with Holdfast, on the Redis of --redis", "worker: stops: middle", "worker: goes on", "-: right")
}

func TestScenario_BringsItsOwnServer(t *testing.T) {
	t.Parallel()
	run := exampletest.Command(t)
	run.WantRight()
	run.Order("-: with Holdfast, on an embedded server", "-: right")
}

func TestScenario_EndsAndSaysWhy(t *testing.T) {
	t.Parallel()
	exampletest.Play(t, "--wrong").WantWrong("so it is")
	for _, tt := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"--fails"}, 1, "direct failed"},
		{[]string{"--ends-early"}, 1, "worker: exit status 1"},
		{[]string{"--kills"}, 1, "worker: signal: killed"},
		{[]string{"--exits"}, 1, `worker ended before it said "what it never says"`},
		{[]string{"--wrong", "--fails"}, 2, "exclude each other"},
		{[]string{"--what"}, 2, "not defined"},
		{[]string{"what"}, 2, `unexpected argument "what"`},
		{[]string{"--redis", "redis://:secret@127.0.0.1:1/0"}, 1, "no usable Redis at 127.0.0.1:1"},
		{[]string{"--redis", "redis://:secret@127.0.0.1:port/0"}, 1, "--redis: invalid port"},
	} {
		run := exampletest.Command(t, tt.args...)
		if run.Status != tt.status || !strings.Contains(run.Stderr, tt.want) || strings.Contains(run.Stderr, "secret") {
			t.Errorf("%q: status %d, stderr %q, want %d and %q", tt.args, run.Status, run.Stderr, tt.status, tt.want)
		}
	}
}

// Whatever ends the program, it cleans up, also behind a process that is paused.
func TestScenario_IsCutShort(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no such signals")
	}
	for name, end := range map[string]os.Signal{
		"interrupted": os.Interrupt, "terminal closed": syscall.SIGHUP, "nobody reads": nil,
	} {
		t.Run(name, func(t *testing.T) {
			if status := exampletest.Cut(t, "still here", end, "--talks"); status != 1 {
				t.Errorf("status %d, want 1", status)
			}
		})
	}
}
