package holdfast

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// text is a place that a logger writes to.
type text struct {
	mu  sync.Mutex
	all bytes.Buffer // guarded by mu
}

func (x *text) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.all.Write(p)
}

// count returns how often part was written.
func (x *text) count(part string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return strings.Count(x.all.String(), part)
}

// writing returns a manager on srv, and what it logs.
func writing(t *testing.T, srv *redistest.Server) (*Manager, *text) {
	t.Helper()
	log := &text{}
	m, err := New(srv.Client(t), WithLogger(slog.New(slog.NewTextHandler(log, nil))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m, log
}

// The end of a lease has passed when its manager is closed, and the timer has not run: the lease was lost.
func TestClose_AfterTheEndIsTheLoss(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	for _, c := range []struct {
		option LockOption
		err    error
		line   string
	}{
		{WithFixedLease(time.Minute), ErrLeaseLost, `msg="holdfast: lease lost" lock=a reason=deadline`},
		{WithMaxHold(time.Hour), ErrMaxHold, `msg="holdfast: maximum hold time reached" lock=a`},
	} {
		m, log := writing(t, srv)
		lease, err := m.Mutex("a", c.option).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		lease.inner().Inside().SetEnd(time.Now().Add(-time.Millisecond)) // the schedule is about to say so
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if got := lease.Err(); !errors.Is(got, c.err) {
			t.Errorf("ended with %v, want %v", got, c.err)
		}
		if n := log.count(c.line); n != 1 || log.count("level=WARN") != 1 {
			t.Errorf("%d lines of %s, %d warnings", n, c.line, log.count("level=WARN"))
		}
		srv.Admin().FlushAll(t.Context())
	}
}

// A grant that several holds stood in the way of is the loss of each of them.
func TestLosses_OfSeveralReaders(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		m, log := writing(t, srv)
		for _, d := range []time.Duration{time.Minute, 2 * time.Minute, 3 * time.Minute} { // they share no hold
			if _, err := m.RWMutex("a", WithFixedLease(d)).RLock(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		srv.Admin().FlushAll(t.Context())
		if _, err := m.RWMutex("a").Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		redistest.Eventually(t, 15*time.Second, "it is told", func() bool {
			return log.count(`msg="holdfast: lease lost" lock=a reason=stolen`) == 3 && m.Stats().Lost == 3
		})
	})
}
