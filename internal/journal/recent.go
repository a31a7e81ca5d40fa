package journal

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// Event is a line that was written, or would have been if the logger wrote it.
type Event struct {
	At    time.Time
	Level slog.Level
	Text  string
	Lock  string // the line is about this lock; empty: about all

	args []any // what else it says; key and value in turn
}

// Details is what the line says beside its text and lock.
func (e Event) Details() string {
	var parts []string
	for i := 0; i+1 < len(e.args); i += 2 {
		value := e.args[i+1]
		if d, ok := value.(time.Duration); ok {
			value = d.Round(time.Millisecond)
		}
		parts = append(parts, fmt.Sprintf("%v: %v", e.args[i], value))
	}
	return strings.Join(parts, ", ")
}

// Recent keeps so many lines about single locks, and so many about all: a thousand lost locks do not displace why they
// were lost.
const (
	recentLocks = 64
	recentAll   = 36
)

type recent struct {
	locks ring[[recentLocks]Event]
	all   ring[[recentAll]Event]
}

// ring has the latest events. Its array is there from the beginning on, so an event costs no allocation.
type ring[A [recentLocks]Event | [recentAll]Event] struct {
	events A
	n      int // that have been added
}

func (r *ring[A]) add(e Event) {
	r.events[r.n%len(r.events)] = e
	r.n++
}

// Recent returns the latest events, the oldest first.
func (j *Journal) Recent() []Event {
	j.mu.Lock()
	all := append(slices.Clone(j.recent.locks.events[:]), j.recent.all.events[:]...)
	j.mu.Unlock()
	all = slices.DeleteFunc(all, func(e Event) bool { return e.At.IsZero() })
	slices.SortStableFunc(all, func(a, b Event) int { return a.At.Compare(b.At) })
	return all
}
