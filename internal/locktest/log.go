package locktest

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast"
)

// Lines is a handler that keeps what is logged, a line for each record.
type Lines struct {
	slog.Handler
	mu  sync.Mutex
	all []string // guarded by mu
}

// Logged returns what a manager with the option logs.
func Logged() (*Lines, holdfast.Option) {
	l := &Lines{Handler: slog.DiscardHandler}
	return l, holdfast.WithLogger(slog.New(l))
}

// Unlogged has a manager log nothing: faults that a test makes are no news.
var Unlogged = holdfast.WithLogger(slog.New(slog.DiscardHandler))

// Enabled is a method of slog.Handler.
func (*Lines) Enabled(context.Context, slog.Level) bool { return true }

// Handle is a method of slog.Handler.
func (l *Lines) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool { line += fmt.Sprintf(" %s=%v", a.Key, a.Value); return true })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
	return nil
}

// With returns the lines that contain all of texts.
func (l *Lines) With(texts ...string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
lines:
	for _, line := range l.all {
		for _, text := range texts {
			if !strings.Contains(line, text) {
				continue lines
			}
		}
		found = append(found, line)
	}
	return found
}
