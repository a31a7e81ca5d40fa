// Command fenced-writer pauses a process between its last look at the lock and its
// write, for longer than the lease. The store refuses the write by its fencing token.
package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/example"
)

const lease = time.Second

func main() {
	example.Main(example.Scenario{
		Name:   "fenced-writer",
		Usage:  "a paused holder wakes up after its lease and writes; the store rejects the old token",
		Modes:  map[string]string{"recipe": "guard the document with SET key random PX lease NX and compare-and-delete; no tokens"},
		Direct: direct,
		Roles:  map[string]func(context.Context, *example.Worker) error{"writer": writer},
	})
}

const lastLook = "between the last look and the write"

// writer adds its name to the document once.
func writer(ctx context.Context, w *example.Worker) error {
	if w.Mode == "recipe" {
		return unfenced(ctx, w)
	}
	locks, err := holdfast.New(w.Redis, holdfast.WithLease(lease), holdfast.WithFencing())
	if err != nil {
		return err
	}
	defer locks.Close(context.WithoutCancel(ctx))

	held, err := locks.Mutex(w.Key("document")).Lock(ctx)
	if err != nil {
		return err
	}
	defer held.Unlock(ctx)
	w.Say("has the lock, token %d", held.Token())
	text, err := read(ctx, w)
	if err != nil {
		return err
	}
	if !held.Valid() {
		return errors.New("the lease is over")
	}
	w.Here(lastLook) // however close to the write the last look is, this can happen
	switch err := write(ctx, w, text+" "+w.Name, held.Token()); {
	case errors.Is(err, errStale):
		w.Say("is refused: %v", err)
		return nil // what it wanted to write is worth nothing
	case err != nil:
		return err
	}
	w.Say("has written")
	return nil
}

func direct(ctx context.Context, d *example.Director) error {
	d.Say("a lease of %v", lease)
	paused := d.StartUntil(lastLook, "writer", "writer-1")
	paused.AwaitStop()
	paused.Pause()

	d.Start("writer", "writer-2").Wait() // as soon as the lease of writer-1 has run out

	dying := d.StartUntil(lastLook, "writer", "writer-3")
	dying.AwaitStop()
	dying.Kill()
	d.Start("writer", "writer-4").Wait()

	paused.Tell("go on")
	paused.Resume()
	paused.Wait()

	text, err := d.Redis.HGet(ctx, d.Key("store"), "text").Result()
	d.Must(err)
	d.Say("the document: %s", text)
	d.Check(strings.Fields(text)[0] == "writer-2", "writer-1 has overwritten what came after it")
	d.Check(text == " writer-2 writer-4", "the document is %q", text)
	return nil
}
