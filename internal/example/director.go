package example

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// Director is the process that was started from the command line. Its methods do not
// return errors: a scenario that cannot go on ends, and Main reports why. They are for
// the goroutine that Scenario.Direct runs on.
type Director struct {
	*World
	ctx      context.Context
	end      context.CancelCauseFunc // of ctx
	redisURL string
	embedded *miniredis.Miniredis // nil: somebody else's Redis
	begun    time.Time
	cast     []*Process
	wrong    []string

	mu sync.Mutex // one line at a time
}

func newDirector(ctx context.Context, end context.CancelCauseFunc, redisURL, mode string) (*Director, error) {
	d := &Director{ctx: ctx, end: end, redisURL: redisURL, begun: time.Now(), World: &World{Mode: mode, id: rand.Text()}}
	where := "the Redis of --redis"
	if redisURL == "" {
		d.embedded = miniredis.NewMiniRedis()
		d.embedded.ClockTTL(true) // else time stands still for TTLs
		if err := d.embedded.Start(); err != nil {
			return nil, fmt.Errorf("start the embedded server: %w", err)
		}
		d.redisURL = "redis://" + d.embedded.Addr()
		where = "an embedded server (miniredis)"
	}
	var err error
	if d.Redis, err = connect(ctx, d.redisURL); err != nil {
		return nil, err
	}
	how := "with Holdfast"
	if mode != "" {
		how = "with --" + mode
	}
	d.Say("%s, on %s", how, where)
	return d, nil
}

// giveUp is what the director's methods panic with; direct recovers it.
type giveUp struct{ error }

func (d *Director) giveUp(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	if d.ctx.Err() != nil {
		err = errors.Join(context.Cause(d.ctx), err)
	}
	panic(giveUp{err})
}

// direct runs the scenario and turns what went wrong into an error.
func (d *Director) direct(script func(context.Context, *Director) error) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case giveUp:
			err = r.error
		default:
			panic(r)
		}
	}()
	if err := script(d.ctx, d); err != nil {
		return err
	}
	if len(d.wrong) > 0 {
		return fmt.Errorf("WRONG: %s", strings.Join(d.wrong, "; "))
	}
	d.Say("right")
	return nil
}

// Say prints a line of the director's own.
func (d *Director) Say(format string, args ...any) { d.print("-", oneLine(format, args...)) }

func (d *Director) print(who, what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := fmt.Printf("%7.3fs  %-11s %s\n", time.Since(d.begun).Seconds(), who, what); err != nil {
		d.end(err) // nobody reads it
	}
}

// Check notes that the outcome is wrong unless ok.
func (d *Director) Check(ok bool, format string, args ...any) {
	if !ok {
		d.wrong = append(d.wrong, fmt.Sprintf(format, args...))
	}
}

// Must ends the scenario if err is not nil.
func (d *Director) Must(err error) {
	if err != nil {
		d.giveUp("%w", err)
	}
}

// Start starts a process that plays role.
func (d *Director) Start(role, name string) *Process { return d.StartUntil("", role, name) }

// StartUntil is Start of a process that stops at the point of that name, see
// Worker.Here. It is for processes that are going to be killed or paused.
func (d *Director) StartUntil(point, role, name string) *Process {
	text, err := json.Marshal(part{Role: role, Name: name, Mode: d.Mode, ID: d.id, Redis: d.redisURL, StopAt: point})
	d.Must(err)
	exe, err := os.Executable()
	d.Must(err)
	cmd := exec.CommandContext(d.ctx, exe)
	cmd.Env = append(os.Environ(), partEnv+"="+string(text), "GORACE=atexit_sleep_ms=10 "+os.Getenv("GORACE"))
	p, err := startProcess(d, name, cmd)
	d.Must(err)
	d.cast = append(d.cast, p)
	return p
}

// close ends the processes that still run and removes the keys.
func (d *Director) close() error {
	for _, p := range d.cast {
		p.end()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.ctx), 5*time.Second)
	defer cancel()
	err := errors.Join(d.clean(ctx), d.Redis.Close())
	if d.embedded != nil {
		d.embedded.Close()
	}
	return err
}
