package load

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Still is what locks or waiters in other processes cost while nothing happens.
type Still struct {
	Sent  Tally
	Taken Sample // of the last process
}

// standstillLimit is how long it may take until nothing happens any more.
const standstillLimit = 30 * time.Second

// Settled waits until nothing happens any more, and counts from there.
type Settled func(context.Context, *Fleet) (*Usage, error)

// Standstill starts jobs one after the other, waits until all is settled, and then
// watches for a while.
func (f *Fleet) Standstill(ctx context.Context, settled Settled, watch time.Duration) (s Still, err error) {
	defer func() { err = errors.Join(err, f.close()) }()
	if err := f.open(ctx); err != nil {
		return s, err
	}
	for i, m := range f.members {
		if err := m.start(); err != nil {
			return s, err
		}
		// The first job of several holds what the others wait for.
		if i < len(f.members)-1 && !within(standstillLimit, func() bool { return f.progress() > int64(i) }) {
			return s, fmt.Errorf("process %d did not get its lock", i+1)
		}
	}
	u, err := settled(ctx, f)
	if err != nil {
		return s, err
	}
	time.Sleep(watch)
	if s.Sent, err = u.SoFar(ctx); err != nil {
		return s, err
	}
	if s.Taken, err = f.members[len(f.members)-1].sample(); err != nil {
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

// last is how many callers the last job has.
func (f *Fleet) last() int { return f.Jobs[len(f.Jobs)-1].Callers }

// Locked waits until all callers have their locks, and for a tick, so that renewals are
// spread.
func Locked(tick time.Duration) Settled {
	return func(ctx context.Context, f *Fleet) (*Usage, error) {
		if !within(standstillLimit, func() bool { return f.progress() == int64(f.last()) }) {
			return nil, fmt.Errorf("not all locked after %v", standstillLimit)
		}
		time.Sleep(tick)
		return f.usage(ctx)
	}
}

// Quiet waits until the first requests of all waiters are over: half a second has no
// more commands than a hundredth of them would send. Those who ask again and again are
// watched after a while all the same; brief, after a shorter one.
func Quiet(brief bool) Settled {
	const pause = 500 * time.Millisecond
	limit := standstillLimit
	if brief {
		limit /= 5
	}
	return func(ctx context.Context, f *Fleet) (*Usage, error) {
		for end := time.Now().Add(limit); ; {
			u, err := f.usage(ctx)
			if err != nil {
				return nil, err
			}
			time.Sleep(pause)
			sent, err := u.SoFar(ctx)
			if err != nil {
				return nil, err
			}
			if sent.Commands <= int64(f.last()/100) || time.Now().After(end) {
				return u, u.Restart(ctx)
			}
		}
	}
}
