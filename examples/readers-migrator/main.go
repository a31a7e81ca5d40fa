// Command readers-migrator lets many readers use a schema, in several processes, while
// one process migrates it. A reader dies in the middle of reading.
package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/example"
)

const (
	processes = 3
	readers   = 5 // per process
	lease     = time.Second
	// enough is for how long the director waits for the migration.
	enough = 6 * time.Second
)

func main() {
	example.Main(example.Scenario{
		Name:  "readers-migrator",
		Usage: "many readers and one migrator on a read-write lock, and a reader that dies",
		Modes: map[string]string{
			"recipe": "guard the schema with a counter of readers and a flag for the writer",
			"unsafe": "read and migrate without a lock",
		},
		Direct: direct,
		Roles: map[string]func(context.Context, *example.Worker) error{
			"reader":   reader,
			"migrator": migrator,
		},
	})
}

// rwGuard runs functions under one side of a lock.
type rwGuard struct {
	read, write func(ctx context.Context, fn func(ctx context.Context) error) error
}

func newGuard(w *example.Worker, locks *holdfast.Manager) rwGuard {
	switch w.Mode {
	case "recipe":
		return counted(w)
	case "unsafe":
		none := func(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) }
		return rwGuard{none, none}
	}
	schema := locks.RWMutex(w.Key("schema"))
	under := func(l holdfast.Locker) func(context.Context, func(context.Context) error) error {
		return func(ctx context.Context, fn func(context.Context) error) error {
			return holdfast.Do(ctx, l, func(ctx context.Context, _ *holdfast.Lease) error { return fn(ctx) })
		}
	}
	return rwGuard{read: under(schema.RLocker()), write: under(schema)}
}

// reader reads all the time, until it is told to stop.
func reader(ctx context.Context, w *example.Worker) error {
	locks, err := holdfast.New(w.Redis, holdfast.WithLease(lease))
	if err != nil {
		return err
	}
	defer locks.Close(context.WithoutCancel(ctx))
	guard := newGuard(w, locks)
	ctx, stop := context.WithCancelCause(ctx)
	told := errors.New("told to stop")
	go func() { <-w.Told(); stop(told) }()

	var all errgroup.Group
	seen := observations{w: w}
	for range readers {
		all.Go(func() error {
			for {
				err := guard.read(ctx, func(ctx context.Context) error { return read(ctx, w, &seen) })
				if context.Cause(ctx) == told {
					return nil
				}
				if err != nil {
					return err
				}
			}
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	w.Say("torn: %d of %d reads", seen.torn, seen.reads)
	return nil
}

// migrator migrates once nobody reads.
func migrator(ctx context.Context, w *example.Worker) error {
	locks, err := holdfast.New(w.Redis, holdfast.WithLease(lease))
	if err != nil {
		return err
	}
	defer locks.Close(context.WithoutCancel(ctx))
	w.Say("asks for the write side")
	return newGuard(w, locks).write(ctx, func(ctx context.Context) error { return migrate(ctx, w) })
}

func direct(ctx context.Context, d *example.Director) error {
	d.Must(d.Redis.MSet(ctx, d.Key("version"), 1, d.Key("data"), 1).Err())
	d.Say("%d readers in %d processes", processes*readers, processes)
	dying := d.StartUntil("reading", "reader", "reader-1")
	dying.AwaitStop()
	var all []*example.Process
	for i := 2; i <= processes; i++ {
		p := d.Start("reader", fmt.Sprintf("reader-%d", i))
		p.Await("sees schema 1")
		all = append(all, p)
	}
	dying.Kill() // it holds the read side

	if _, migrated := d.Start("migrator", "migrator").AwaitFor("has migrated", enough); migrated {
		for _, p := range all {
			p.Await("sees schema 2")
		}
	} else {
		d.Check(false, "%v later the migrator still waits for a reader that is dead", enough)
	}
	for _, p := range all {
		p.Tell("stop")
		torn := p.Await("torn: ")
		p.Wait()
		d.Check(strings.HasPrefix(torn, "0 "), "a reader saw half a migration in %s", torn)
	}
	return nil
}
