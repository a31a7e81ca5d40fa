package main

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
)

// nightly writes the report of each day after its end, until ctx ends. When it starts it makes up for the day before.
func (s *shop) nightly(ctx context.Context) {
	for {
		now := time.Now()
		today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
		pause := time.Until(today.AddDate(0, 0, 1))
		if err := s.report(ctx, today.AddDate(0, 0, -1)); err != nil && ctx.Err() == nil {
			s.log.ErrorContext(ctx, "report failed", "error", err)
			pause = min(pause, time.Minute)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// report writes the report of a day, if no replica has done so. The lock keeps replicas from working at the same time. The row of
// the day keeps a replica that comes later from doing it again. The token keeps out a replica that was paused beyond its lease.
func (s *shop) report(ctx context.Context, day time.Time) (err error) {
	ctx, span := s.tracer.Start(ctx, "report")
	defer span.End()
	lease, err := s.locks.Mutex("shop:report", holdfast.WithFencing()).TryLock(ctx)
	if errors.Is(err, holdfast.ErrNotAcquired) {
		return nil // another replica is at work
	}
	if err != nil {
		return err
	}
	defer lease.UnlockInto(ctx, &err)
	token, err := lease.FencingToken()
	if err != nil {
		return err
	}
	ran, err := writeReport(lease.Context(ctx), s.db, day.Format(time.DateOnly), token)
	if ran {
		s.log.InfoContext(ctx, "report written", "day", day.Format(time.DateOnly))
	}
	return err
}
