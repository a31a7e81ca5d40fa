package load

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
// from where settled counts, and then watches for a while.
func (t trial) standstill(ctx context.Context, jobs []job, settled func(context.Context, *fleet) (*usage, error), watch time.Duration) (s still, err error) {
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
	u, err := settled(ctx, f)
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

// locked waits until all names are locked, and for a tick, so that renewals are spread.
func locked(ctx context.Context, f *fleet) (*usage, error) {
	if !within(standstillLimit, func() bool { return f.page.words[wordProgress].Load() == int64(f.n) }) {
		return nil, fmt.Errorf("not all locked after %v", standstillLimit)
	}
	time.Sleep(f.tick())
	return f.usage(ctx)
}

// quiet waits until the first requests of all waiters are over: half a second has no
// more commands than a hundredth of them would send. Those who ask again and again are
// watched after a while all the same.
func quiet(ctx context.Context, f *fleet) (*usage, error) {
	const pause = 500 * time.Millisecond
	limit := standstillLimit
	if f.brief() {
		limit /= 5
	}
	for end := time.Now().Add(limit); ; {
		u, err := f.usage(ctx)
		if err != nil {
			return nil, err
		}
		time.Sleep(pause)
		sent, err := u.soFar(ctx)
		if err != nil {
			return nil, err
		}
		if sent.commands <= int64(f.n/100) || time.Now().After(end) {
			return u, u.restart(ctx)
		}
	}
}
