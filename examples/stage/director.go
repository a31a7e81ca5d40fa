package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/vredis"
)

// Director is the process that was started from the command line. Its methods do not return errors: a scenario that cannot
// go on ends, and the stage reports why. They are for the goroutine that the scenario runs on.
type Director struct {
	Mode  string // which of the scenario's modes is played; "": Holdfast
	Redis *redis.Client

	ctx      context.Context
	end      context.CancelCauseFunc // of ctx
	id       string                  // of this run, in all its keys
	dir      string                  // has the executable
	exe      string                  // the program
	embedded *vredis.Listener        // nil: the Redis of --redis
	begun    time.Time
	cast     []*Process
	wrong    []string

	mu sync.Mutex // one line at a time
}

// module has the programs. The stage has to run inside it, where go finds them.
const module = "github.com/holdfast-go/holdfast/examples/"

// newDirector returns a director with a Redis and the program. The caller closes it, even with an error.
func newDirector(ctx context.Context, end context.CancelCauseFunc, redisURL, mode, program string) (*Director, error) {
	d := &Director{Mode: mode, ctx: ctx, end: end, id: rand.Text()}
	where := "the Redis of --redis"
	if redisURL == "" {
		server, err := vredis.Listen(vredis.Options{})
		if err != nil {
			return d, fmt.Errorf("start the embedded server: %w", err)
		}
		d.embedded, redisURL = server, "redis://"+server.Addr()
		where = "an embedded server"
	}
	var err error
	if d.Redis, err = connect(ctx, redisURL); err != nil {
		return d, err
	}
	if d.dir, err = os.MkdirTemp("", "holdfast-stage-"); err != nil {
		return d, err
	}
	d.exe = filepath.Join(d.dir, "program.exe")           // Windows wants the ending, and others do not mind
	args := []string{"build", "-ldflags=-w", "-o", d.exe} // without what debuggers need, in two thirds of the time
	if out, err := exec.CommandContext(ctx, "go", append(args, module+program)...).CombinedOutput(); err != nil {
		return d, errors.Join(context.Cause(ctx), fmt.Errorf("go build %s: %w\n%s", program, err, out))
	}
	d.begun = time.Now()
	how := "with Holdfast"
	if mode != "" {
		how = "with --" + mode
	}
	d.Say("%s, on %s", how, where)
	return d, nil
}

// Key returns the name of a key, or lock, of this run, as the program knows it by its flag -prefix.
func (d *Director) Key(name string) string { return d.prefix() + name }

func (d *Director) prefix() string { return "holdfast-example:" + d.id + ":" }

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
func (d *Director) direct(script func(context.Context, *Director)) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case giveUp:
			err = r.error
		default:
			panic(r)
		}
	}()
	script(d.ctx, d)
	if len(d.wrong) > 0 {
		return fmt.Errorf("WRONG: %s", strings.Join(d.wrong, "; "))
	}
	d.Say("right")
	return nil
}

// Say prints a line of the director.
func (d *Director) Say(format string, args ...any) { d.print("-", fmt.Sprintf(format, args...)) }

func (d *Director) print(name, line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := fmt.Printf("%7.3fs  %-11s %s\n", time.Since(d.begun).Seconds(), name, line); err != nil {
		d.end(err) // the output is closed
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

// Start starts a process of the program.
func (d *Director) Start(name string, args ...string) *Process {
	return d.StartHeld("", name, args...)
}

// StartUntil is StartHeld that waits for the request.
func (d *Director) StartUntil(request, name string, args ...string) *Process {
	p := d.StartHeld(request, name, args...)
	p.AwaitRequest()
	return p
}

// StartHeld is Start of a process that the director is going to kill or pause: the stage holds back the requests to Redis
// that contain the text, and all that follow on their connections. A request is its words with a blank between them.
func (d *Director) StartHeld(request, name string, args ...string) *Process {
	l, err := newLine(request, dial(d.ctx, d.Redis))
	d.Must(err)
	if d.Mode != "" {
		args = append([]string{"-" + d.Mode}, args...)
	}
	cmd := exec.CommandContext(d.ctx, d.exe, append([]string{"-prefix", d.prefix()}, args...)...)
	cmd.Env = append(os.Environ(), "REDIS_URL="+urlThrough(l, d.Redis), "GORACE=atexit_sleep_ms=10 "+os.Getenv("GORACE"))
	p := &Process{director: d, name: name, cmd: cmd, line: l, said: make(chan string, room), ended: make(chan struct{})}
	if err := p.start(); err != nil {
		l.close()
		d.Must(err)
	}
	d.cast = append(d.cast, p)
	return p
}

// close ends the processes that still run and removes the keys.
func (d *Director) close() (err error) {
	for _, p := range d.cast {
		p.end()
	}
	if d.Redis != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(d.ctx), 5*time.Second)
		defer cancel()
		err = errors.Join(clean(ctx, d.Redis, d.id), d.Redis.Close())
	}
	if d.embedded != nil {
		d.embedded.Close()
	}
	return errors.Join(err, os.RemoveAll(d.dir))
}
