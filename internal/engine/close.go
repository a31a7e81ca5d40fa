package engine

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// closeGrace is how long Close waits at least: a program that ends by a signal closes under the
// context that has ended.
const closeGrace = 100 * time.Millisecond

// Close is Manager.Close.
func (m *Engine) Close(ctx context.Context) error {
	m.mu.Lock()
	first := !m.closed
	var entries []*entry
	if first {
		m.closed = true
		entries = m.entriesLocked()
		m.pending++ // so that drained is not closed before all have begun
	}
	m.mu.Unlock()
	if first {
		for _, e := range entries {
			e.close()
		}
		m.hasten()
		m.Identity.close()
		m.end()
		m.stopErr = m.explain("", m.stop(ctx))
		close(m.stopped)
		return m.stopErr
	}
	late, unhook := withGrace(ctx, closeGrace)
	defer unhook()
	select {
	case <-m.stopped:
		return m.stopErr
	case <-late.Done():
		return m.explain("", because(Unavailable, append([]error{Unreleased}, ContextCauses(ctx)...)...))
	}
}

// withGrace returns a context that ends with ctx, but not before d is over; and a function
// that ends it.
func withGrace(ctx context.Context, d time.Duration) (context.Context, func()) {
	began := time.Now()
	late, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() {
		time.AfterFunc(d-time.Since(began), func() { cancel(context.Cause(ctx)) })
	})
	return late, func() { unhook(); cancel(nil) }
}

// stop waits for the releases and stops the goroutines.
func (m *Engine) stop(ctx context.Context) (v *Verdict) {
	ctx, unhook := withGrace(ctx, closeGrace)
	defer unhook()
	ctx, cancel := context.WithTimeout(ctx, m.askPatience())
	defer cancel()
	select {
	case <-m.drained:
		m.Identity.wait(ctx)
		m.mu.Lock()
		if m.denied != nil {
			v = because(Unavailable, Unreleased, m.denied)
		}
		m.mu.Unlock()
	case <-ctx.Done():
		m.mu.Lock()
		v = because(Unavailable, Unreleased, m.trouble, context.Cause(ctx))
		m.mu.Unlock()
	}
	m.endLife()
	var g errgroup.Group
	g.Go(func() error { return m.scheduler.Stop(ctx) })
	g.Go(func() error { return m.Subscriber.Stop(ctx) })
	g.Go(func() error { return m.Executor.Stop(ctx) })
	if err := g.Wait(); err != nil && v == nil {
		v = because(Unavailable, Unreleased, err)
	}
	if err := m.Journal.Close(ctx); err != nil && v == nil {
		v = because(Unavailable, Unreleased, err)
	}
	m.Telemetry.Close()
	return v
}
