package main

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/example"
)

const (
	reading   = 5 * time.Millisecond
	migrating = 300 * time.Millisecond
)

// read is what a reader does under the lock: it looks which schema there is, and then
// at data that had better be of that schema.
func read(ctx context.Context, w *example.Worker, seen *observations) error {
	schema, err := w.Redis.Get(ctx, w.Key("version")).Int()
	if err != nil {
		return err
	}
	w.Here("reading")
	if err := w.Think(ctx, reading); err != nil {
		return err
	}
	data, err := w.Redis.Get(ctx, w.Key("data")).Int()
	if err == nil {
		seen.add(schema, data)
	}
	return err
}

// migrate changes both, one after the other.
func migrate(ctx context.Context, w *example.Worker) error {
	w.Say("migrates")
	if err := w.Redis.Set(ctx, w.Key("version"), 2, 0).Err(); err != nil {
		return err
	}
	if err := w.Think(ctx, migrating); err != nil {
		return err
	}
	if err := w.Redis.Set(ctx, w.Key("data"), 2, 0).Err(); err != nil {
		return err
	}
	w.Say("has migrated")
	return nil
}

// observations are what the readers of a process have seen.
type observations struct {
	w *example.Worker

	mu          sync.Mutex // guards the following
	schema      int        // the latest
	reads, torn int        // torn: schema and data did not match
}

func (o *observations) add(schema, data int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reads++
	if schema != data {
		o.torn++
	}
	if schema > o.schema {
		o.schema = schema
		o.w.Say("sees schema %d", schema)
	}
}
