// Package journal writes the log lines about what happens to locks, and about what concerns all of them: losses, outages,
// renewals that fail. It bounds how many lines of one sort there are.
package journal

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// Journal writes what can happen to many locks at a time, and what concerns all of them. A handler of the logger is
// code of the user, and may take long. So what is found out under a lock, or by a goroutine that others wait for, goes
// into a queue, which keeps its order; a goroutine that ends with the queue writes it.
type Journal struct {
	log *slog.Logger // nil: slog.Default, from Warn on

	mu       sync.Mutex // guards the following; a leaf in the lock order
	bursts   map[burstKey]*burst
	renewals failing
	waits    failing // of callers that Redis refuses
	recent   recent
	numbers  map[string]bool // the semaphores that OtherNumber has written of
	closed   bool
	queue    []line    // to be written
	writing  bool      // a goroutine writes the queue
	written  sync.Cond // on mu: writing has become false
}

// line is one of the log.
type line struct {
	level slog.Level
	text  string
	args  []any
	ends  bool // what a line from Warn on has begun
}

const (
	// burstLines is how many lines of one sort are written one by one in a second; the rest is one line.
	// A search for a lock's name finds its line, unless the process loses thousands of locks at once.
	burstLines = 1000
	// burstNames bounds the names in that line.
	burstNames = 100
)

// burstKey is what lines of one sort have in common.
type burstKey struct {
	what   string // the message, and that of the line for the rest
	reason string
}

// burst is a second in which lines of one sort are written.
type burst struct {
	lines int      // written
	count int      // of those that are kept for one line
	names []string // their locks, burstNames at most
	timer *time.Timer
}

// New returns a journal that writes to log. If that is nil, the journal writes to what [slog.Default] is at the time: lines
// from Warn on, and those that end what such a line has begun. New starts nothing.
func New(log *slog.Logger) *Journal {
	j := &Journal{log: log, bursts: make(map[burstKey]*burst)}
	j.written.L = &j.mu
	return j
}

// Logger is where lines go.
func (j *Journal) Logger() *slog.Logger {
	return cmp.Or(j.log, slog.Default())
}

// Say has a line written, behind those before. It does not wait for that.
func (j *Journal) Say(level slog.Level, text string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sayLocked(line{level, text, args, false})
}

// SayEnd is Say, at Info, for the end of what a line from Warn on has begun.
func (j *Journal) SayEnd(text string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sayLocked(line{slog.LevelInfo, text, args, true})
}

func (j *Journal) sayLocked(l line) {
	if l.level > slog.LevelDebug {
		j.recent.all.add(Event{At: time.Now(), Level: l.level, Text: l.text, args: l.args})
	}
	if j.log == nil && l.level < slog.LevelWarn && !l.ends {
		return
	}
	j.queue = append(j.queue, l)
	if !j.writing {
		j.writing = true
		go j.write()
	}
}

// write writes the queue until it is empty.
func (j *Journal) write() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.queue) > 0 {
		batch := j.queue
		j.queue = nil
		j.mu.Unlock()
		for _, l := range batch {
			j.Logger().Log(context.Background(), l.level, l.text, l.args...)
		}
		j.mu.Lock()
	}
	j.writing = false
	j.written.Broadcast()
}

// one writes a line about a lock, or keeps it for the line that sums up the second. more says what is
// to be written besides, if it is a line of its own. No lock may be held by its callers.
func (j *Journal) one(k burstKey, lock string, more ...any) {
	logs := j.Logger().Enabled(context.Background(), slog.LevelWarn)
	j.mu.Lock()
	j.recent.locks.add(Event{At: time.Now(), Level: slog.LevelWarn, Text: k.what, Lock: lock, args: more})
	if !logs {
		j.mu.Unlock()
		return
	}
	b := j.bursts[k]
	if b == nil {
		b = &burst{}
		j.bursts[k] = b
		b.timer = time.AfterFunc(time.Second, func() { j.sumUp(k, b) })
	}
	alone := b.lines < burstLines
	if alone {
		b.lines++
	} else {
		b.count++
		if len(b.names) < burstNames {
			b.names = append(b.names, lock)
		}
	}
	j.mu.Unlock()
	if alone {
		j.Logger().Warn(k.what, append([]any{"lock", lock}, more...)...)
	}
}

// sumUp ends a burst with a line for what was kept.
func (j *Journal) sumUp(k burstKey, b *burst) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sumUpLocked(k, b)
}

func (j *Journal) sumUpLocked(k burstKey, b *burst) {
	if j.bursts[k] != b {
		return
	}
	delete(j.bursts, k)
	b.timer.Stop()
	if b.count > 0 {
		j.sayLocked(line{slog.LevelWarn, k.what + ", and others", []any{"count", b.count, "locks", b.names, "reason", k.reason}, false})
	}
}

// Close writes what is kept, and waits for that until ctx is done.
func (j *Journal) Close(ctx context.Context) error {
	j.mu.Lock()
	j.closed = true
	j.renewals.stop()
	j.waits.stop()
	for k, b := range j.bursts {
		j.sumUpLocked(k, b)
	}
	writing := j.writing
	j.mu.Unlock()
	if !writing {
		return nil
	}
	done := make(chan struct{})
	go func() { // ends with the handlers, which are code of the user
		defer close(done)
		j.mu.Lock()
		defer j.mu.Unlock()
		for j.writing {
			j.written.Wait()
		}
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Lost writes that a lease was lost.
func (j *Journal) Lost(lock, reason string) {
	j.one(burstKey{"holdfast: lease lost", reason}, lock, "reason", reason)
}

// GaveUp writes that a release was given up which Redis has not confirmed.
func (j *Journal) GaveUp(lock string, cause error) {
	j.one(burstKey{"holdfast: release given up", "not confirmed"}, lock, "error", cause)
}

// MaxHold writes that a lock was held for as long as WithMaxHold allows.
func (j *Journal) MaxHold(lock string, allowed time.Duration) {
	j.one(burstKey{"holdfast: maximum hold time reached", "max hold"}, lock, "max_hold", allowed)
}

// mostNumbers bounds the lines of OtherNumber, and with them the names to remember.
const mostNumbers = 1000

// OtherNumber writes, once, that a semaphore has another number of permits than a caller's handle says. The queue writes it: the caller
// is a goroutine that others wait for.
func (j *Journal) OtherNumber(lock string, permits, handle int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.numbers[lock] || len(j.numbers) >= mostNumbers {
		return
	}
	if j.numbers == nil {
		j.numbers = make(map[string]bool)
	}
	j.numbers[lock] = true
	j.sayLocked(line{slog.LevelWarn, "holdfast: semaphore has another number of permits in Redis than here", []any{"lock", lock, "permits", permits, "here", handle}, false})
}

// Unavailable writes that requests bring no answer any more.
func (j *Journal) Unavailable(cause error) {
	j.Say(slog.LevelWarn, "holdfast: redis does not answer", "error", cause)
}

// AvailableAgain writes that requests are answered again.
func (j *Journal) AvailableAgain(lasted time.Duration) {
	j.SayEnd("holdfast: redis answers again", "lasted", lasted)
}

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
