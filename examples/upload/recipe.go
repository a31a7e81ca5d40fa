package main

import (
	"context"
	"time"
)

// byHand has the usual recipe: the request locks and unlocks, and the worker locks again. Between the two another request can come in.
func byHand(ctx context.Context, s *site, file string) error {
	if file != "" {
		if err := withKey(ctx, s, func() error { return s.upload(ctx, file) }); err != nil {
			return err
		}
		return s.push(ctx, file, "")
	}
	job, file, _, err := s.take(ctx)
	if err != nil {
		return err
	}
	return withKey(ctx, s, func() error { return s.publish(ctx, job, file) })
}

func withKey(ctx context.Context, s *site, fn func() error) error {
	for key := s.prefix + "document"; ; time.Sleep(10 * time.Millisecond) {
		if locked, err := s.client.SetNX(ctx, key, 1, lease).Result(); err != nil {
			return err
		} else if locked {
			defer s.client.Del(context.WithoutCancel(ctx), key)
			return fn()
		}
	}
}
