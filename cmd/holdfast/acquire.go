package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/supervisor"
)

// acquire returns a lease that is long enough to begin, or the error to exit with. A signal ends the wait, even if it
// comes at the moment of the grant; one that comes later is for the command.
func (j *job) acquire(parent context.Context) (*holdfast.Lease, error) {
	ctx, cancel := context.WithCancel(parent)
	listening, stopped := make(chan struct{}), signalled(0)
	go func() {
		defer close(listening)
		for stopped == 0 {
			select {
			case s := <-j.signals:
				if supervisor.Ends(s) {
					stopped = signalled(s.(syscall.Signal))
					cancel()
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	waiting := ctx
	if j.wait > 0 {
		var done func()
		waiting, done = context.WithTimeout(ctx, j.wait)
		defer done()
	}
	j.detail("waiting for " + printable(j.name))
	j.waits.Store(true)
	lease, err := j.take(waiting)
	j.waits.Store(false)
	if j.maxHold > 0 {
		j.limit = time.Now().Add(j.maxHold)
	}
	if err == nil {
		err = settled(ctx, lease)
	}
	cancel()
	<-listening
	if err == nil && stopped == 0 {
		return lease, nil
	}
	if lease != nil {
		_ = j.release(lease)
	}
	switch {
	case stopped != 0:
		return nil, cli.Exit(fmt.Errorf("%s: %w before the lock was acquired; not run", printable(j.name), stopped), stopped.exitCode())
	case errors.Is(err, holdfast.ErrNotAcquired):
		return nil, j.notAcquired(parent)
	}
	return nil, cli.Exit(err, runFailed)
}

// settled waits until the lease can be expected to last: one that another process has granted has less than two
// seconds until its first renewal, which is under way.
func settled(ctx context.Context, lease *holdfast.Lease) error {
	const first, look = 2 * time.Second, 5 * time.Millisecond
	begin := time.Now()
	deadline := lease.Deadline()
	if deadline.Sub(begin) > first {
		return nil
	}
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-lease.Done():
			return lease.Err()
		case <-tick.C:
		}
		// A short lease cannot be told from one that another process has granted, so it is renewed once as well.
		if lease.Deadline().After(deadline) {
			return nil
		}
	}
}

// notAcquired prints the holder of the lock.
func (j *job) notAcquired(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, j.timeout)
	defer cancel()
	name, who := printable(j.name), "none any more" // or by waiters that come first
	for _, at := range j.conn.sites() {
		info, err := at.inspect(ctx, j.name)
		if err != nil && !at.away(err) {
			return cli.Exit(err, runFailed)
		}
		if busy(info) {
			who = at.say(holdersAt(ctx, at.client, info))
			break
		}
	}
	j.say("%s is held by %s; not run", name, who)
	return silent(j.busy)
}

// holdersOf is what one line says of the holders.
func holdersOf(info holdfast.Info) string {
	if info.Kind == holdfast.KindSemaphore && !info.Held {
		return fmt.Sprintf("no owner, and %d of %d permits are available", info.Available+info.Ended, info.Permits)
	}
	if len(info.Holders) == 0 {
		return "others"
	}
	text := printable(info.Holders[0].Owner)
	if more := len(info.Holders) - 1 + info.More; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	switch {
	case info.Kind == holdfast.KindSemaphore:
		text += fmt.Sprintf(", and %d of %d permits are available", info.Available+info.Ended, info.Permits)
	case info.TTL > 0:
		text += fmt.Sprintf(", for %v unless renewed", info.TTL.Round(100*time.Millisecond))
	}
	return text
}
