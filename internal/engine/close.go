package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-go/holdfast/internal/lock"
)

// closeGrace is how long Close waits at least: a program that ends by a signal closes under the
// context that has ended.
const closeGrace = 100 * time.Millisecond

// Close is Manager.Close.
func (eng *Engine) Close(ctx context.Context) error {
	eng.mu.Lock()
	first := !eng.closed
	var entries []*entry
	if first {
		eng.closed = true
		entries = eng.entriesLocked()
		eng.pending++ // so that drained is not closed before all have begun
	}
	eng.mu.Unlock()
	if first {
		for _, e := range entries {
			e.do(e.lock.Close)
		}
		eng.hasten()
		eng.Identity.close()
		eng.report(lock.CloseReport{More: -1})
		eng.stopErr = eng.explain("", eng.stop(ctx))
		close(eng.stopped)
		return eng.stopErr
	}
	late, unhook := withGrace(ctx, closeGrace)
	defer unhook()
	select {
	case <-eng.stopped:
		return eng.stopErr
	case <-late.Done():
		return eng.explain("", lock.Because(lock.Unavailable, append([]error{lock.Unreleased}, contextCauses(ctx)...)...))
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
func (eng *Engine) stop(ctx context.Context) (v *lock.Verdict) {
	ctx, unhook := withGrace(ctx, closeGrace)
	defer unhook()
	ctx, cancel := context.WithTimeout(ctx, eng.askPatience())
	defer cancel()
	select {
	case <-eng.drained:
		eng.Identity.wait(ctx)
		eng.mu.Lock()
		if eng.denied != nil {
			v = lock.Because(lock.Unavailable, lock.Unreleased, eng.denied)
		}
		eng.mu.Unlock()
	case <-ctx.Done():
		eng.mu.Lock()
		v = lock.Because(lock.Unavailable, lock.Unreleased, eng.trouble, context.Cause(ctx))
		eng.mu.Unlock()
	}
	eng.endLife()
	var g errgroup.Group
	g.Go(func() error { return eng.scheduler.Stop(ctx) })
	g.Go(func() error { return eng.Subscriber.Stop(ctx) })
	g.Go(func() error { return eng.Executor.Stop(ctx) })
	if err := g.Wait(); err != nil && v == nil {
		v = lock.Because(lock.Unavailable, lock.Unreleased, err)
	}
	if err := eng.Journal.Close(ctx); err != nil && v == nil {
		v = lock.Because(lock.Unavailable, lock.Unreleased, err)
	}
	eng.Telemetry.Close()
	return v
}

// What Close waits for: requests under way, and releases until Redis has answered.

// report records what an event says to Close.
func (eng *Engine) report(r lock.CloseReport) {
	eng.mu.Lock()
	defer eng.mu.Unlock()
	eng.pending += r.More
	if !eng.closed {
		return
	}
	if r.Trouble != nil {
		eng.trouble = r.Trouble
	}
	if d := r.Denied; d != nil {
		eng.denied = eng.explain(nameOf(d.Lock, d.Lease), d.Verdict)
	}
	if eng.pending == 0 && !eng.empty {
		eng.empty = true // an Unlock after Close can begin something again
		close(eng.drained)
	}
}

// Pending is how many requests and releases are under way.
func (eng *Engine) Pending() int {
	eng.mu.Lock()
	defer eng.mu.Unlock()
	return eng.pending
}

// pausing has resend called when the pause of a release is over, unless it is already to be called.
func (eng *Engine) pausing(r *lock.Repeated, pause time.Duration, resend func()) {
	eng.mu.Lock()
	defer eng.mu.Unlock()
	if eng.paused[r] != nil {
		return
	}
	if eng.closed {
		pause = min(pause, lock.AwaitedPause)
	}
	if eng.paused == nil {
		eng.paused = make(map[*lock.Repeated]*time.Timer)
	}
	eng.paused[r] = time.AfterFunc(pause, resend)
}

// resumed ends the pause of a release, if it has one.
func (eng *Engine) resumed(r *lock.Repeated) {
	eng.mu.Lock()
	defer eng.mu.Unlock()
	if timer := eng.paused[r]; timer != nil {
		timer.Stop()
		delete(eng.paused, r)
	}
}

// hasten has the releases that pause sent at once: Close waits for them.
func (eng *Engine) hasten() {
	eng.mu.Lock()
	paused := slices.Collect(maps.Keys(eng.paused))
	eng.mu.Unlock()
	for _, r := range paused {
		e := entryOf(r.Of())
		e.do(func(m *lock.Moment) { e.lock.Resume(m, r) })
	}
}

// Over is closed by Close, when the locks have been released or its time is over.
func (eng *Engine) Over() <-chan struct{} { return eng.life.Done() }
