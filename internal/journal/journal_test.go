package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var errGone = errors.New("gone")

// blocked is a handler that waits before each line, and keeps what is written.
type blocked struct {
	slog.Handler
	open  chan struct{} // closed: it does not wait
	wrote []string      // by one goroutine at a time
}

func (*blocked) Enabled(context.Context, slog.Level) bool { return true }

func (b *blocked) Handle(_ context.Context, r slog.Record) error {
	<-b.open
	b.wrote = append(b.wrote, r.Message)
	return nil
}

// What tells of outages waits for no handler, and its lines keep their order; Close waits for them.
func TestJournal_KeepsTheOrderOfOutages(t *testing.T) {
	h := &blocked{Handler: slog.DiscardHandler, open: make(chan struct{})}
	j := New(slog.New(h))
	var want []string
	for range 7 {
		j.Unavailable(errGone)
		j.AvailableAgain(time.Second)
		want = append(want, "holdfast: redis does not answer", "holdfast: redis answers again")
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errGone)
	if err := j.Close(ended); err != errGone {
		t.Errorf("close: %v", err)
	}
	close(h.open)
	if err := j.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if !slices.Equal(h.wrote, want) {
		t.Errorf("%q, want %q", h.wrote, want)
	}
}

// What comes while the last line is written, or Close waits, is written as well.
func TestJournal_MayBeClosedWhileLinesCome(t *testing.T) {
	for range 200 {
		var out bytes.Buffer
		j := New(slog.New(slog.NewTextHandler(&out, nil)))
		var wg sync.WaitGroup
		wg.Go(func() { j.Say(slog.LevelInfo, "a") })
		wg.Go(func() { _ = j.Close(context.Background()) })
		wg.Wait()
		if err := j.Close(context.Background()); err != nil || !strings.Contains(out.String(), "msg=a") {
			t.Fatalf("%v %q", err, out.String())
		}
	}
}

// The latest lines are there even if no logger writes them, and many lines about locks do not displace the others.
func TestJournal_Recent(t *testing.T) {
	j := New(slog.New(slog.DiscardHandler))
	j.Unavailable(errGone)
	j.Say(slog.LevelDebug, "the same again")
	const n = 10 * recentLocks
	for i := range n {
		j.Lost(fmt.Sprint("lock:", i), "deadline")
	}
	j.AvailableAgain(1500 * time.Millisecond)
	got := j.Recent()
	if len(got) != recentLocks+2 {
		t.Fatalf("%d events", len(got))
	}
	first, last := got[0], got[len(got)-1]
	if first.Text != "holdfast: redis does not answer" || first.Details() != "error: gone" || last.Text != "holdfast: redis answers again" || last.Details() != "lasted: 1.5s" {
		t.Errorf("the first is %q %q, the last %q %q", first.Text, first.Details(), last.Text, last.Details())
	}
	for i, e := range got[1 : len(got)-1] {
		if want := fmt.Sprint("lock:", n-recentLocks+i); e.Lock != want || !strings.Contains(e.Details(), "reason: deadline") {
			t.Errorf("event %d is about %s, want %s", i, e.Lock, want)
		}
	}
}
