package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// still is what locks or waiters in other processes cost while nothing happens.
type still struct {
	sent  tally
	taken sample
}

// per has threads as goroutines and the whole heap, with garbage, as theirs.
func (s still) per(n int) metrics {
	return metrics{
		unitHeap:     float64(s.taken.Memory) / float64(n),
		unitRoutines: float64(s.taken.Goroutines) / float64(n),
	}
}

// standstillLimit is how long it may take until nothing happens any more.
const standstillLimit = 30 * time.Second

// standstill starts jobs in processes one after the other, waits until all is settled,
// and then watches for a while.
func (t trial) standstill(ctx context.Context, jobs []job, settled func(*page) bool, watch time.Duration) (s still, err error) {
	if err := t.server.reset(ctx); err != nil {
		return s, err
	}
	f := &fleet{trial: t, jobs: jobs}
	defer func() { err = errors.Join(err, f.close()) }()
	if err := f.open(); err != nil {
		return s, err
	}
	for i, m := range f.members {
		if err := m.start(); err != nil {
			return s, err
		}
		// The first job of several holds what the others wait for.
		if i < len(f.members)-1 && !within(standstillLimit, func() bool { return f.page.words[wordProgress].Load() > int64(i) }) {
			return s, fmt.Errorf("process %d did not get its lock", i+1)
		}
	}
	if !within(standstillLimit, func() bool { return settled(f.page) }) {
		return s, fmt.Errorf("after %v things still happen", standstillLimit)
	}
	u, err := f.quiet(ctx)
	if err != nil {
		return s, err
	}
	time.Sleep(watch)
	if s.sent, err = u.soFar(ctx); err != nil {
		return s, err
	}
	if s.taken, err = f.members[len(f.members)-1].sample(); err != nil {
		return s, err
	}
	f.page.words[wordPhase].Store(stopped)
	for _, m := range f.members {
		o, err := m.end()
		if err != nil {
			return s, err
		}
		if o.Error != "" {
			return s, errors.New(o.Error)
		}
	}
	return s, nil
}

// within waits until done, but not longer than limit, and returns whether it is.
func within(limit time.Duration, done func() bool) bool {
	for end := time.Now().Add(limit); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// quiet waits until commands come at an even rate, of which half a second is compared
// with the one before, and counts from there.
func (f *fleet) quiet(ctx context.Context) (*usage, error) {
	const pause = 500 * time.Millisecond
	var before int64
	for end := time.Now().Add(standstillLimit); ; {
		u, err := f.usage(ctx)
		if err != nil {
			return nil, err
		}
		time.Sleep(pause)
		sent, err := u.soFar(ctx)
		if err != nil {
			return nil, err
		}
		if few := int64(f.n / 100); before > 0 && sent.commands <= before+few && before <= sent.commands+few || time.Now().After(end) {
			return u, u.restart(ctx)
		}
		before = max(sent.commands, 1)
	}
}
