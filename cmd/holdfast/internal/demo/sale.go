package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/vredis"
)

// Sale is one flash sale, from the opening of the shop until its keys are removed.
type Sale struct {
	cfg      Config
	id       string
	redisURL string
	addr     string // of the Redis; without secrets
	db       int
	server   *vredis.Listener // nil: the Redis of --redis
	rdb      redis.UniversalClient
	shop     *shop
}

const (
	// reachWithin bounds the wait for Redis to answer.
	reachWithin = 5 * time.Second
	// watchEvery is how often it is looked whether Redis is still there.
	watchEvery = time.Second
	// cleanWithin bounds the removal of the keys.
	cleanWithin = 5 * time.Second
)

// Open connects to the Redis of cfg, which must be valid, or starts a server, and
// puts the phones on the shelf. The caller closes the sale.
func Open(ctx context.Context, cfg Config) (_ *Sale, err error) {
	s := &Sale{cfg: cfg, id: rand.Text(), redisURL: cfg.Redis}
	defer func() {
		if err != nil {
			s.disconnect()
		}
	}()
	if s.redisURL == "" {
		if s.server, err = vredis.Listen(); err != nil {
			return nil, fmt.Errorf("start the embedded server: %w", err)
		}
		s.redisURL = "redis://" + s.server.Addr()
	}
	opt, err := parseURL(s.redisURL)
	if err != nil {
		return nil, err
	}
	opt.ContextTimeoutEnabled = true // else a server that is silent costs minutes of retries
	s.addr, s.db = opt.Addr, opt.DB
	s.rdb = redis.NewClient(opt)
	s.shop = newShop(s.rdb, s.id)

	if err := s.reach(ctx); err != nil {
		return nil, err
	}
	if err := s.shop.open(ctx, cfg.Stock); err != nil {
		return nil, err
	}
	return s, nil
}

// reach returns an error if Redis does not answer soon.
func (s *Sale) reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reachWithin)
	defer cancel()
	err := s.rdb.Ping(ctx).Err()
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %v: %w", reachWithin, err)
	}
	if err != nil {
		return fmt.Errorf("no usable Redis at %s: %w", s.addr, err)
	}
	return nil
}

// watch returns an error when Redis is gone, and nil when ctx is done. No other goroutine may
// notice: a Lock waits for a Redis to come back as it waits for another owner.
func (s *Sale) watch(ctx context.Context) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		if err := s.reach(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// Run lets the buyers in and returns what came of it when the last one has left. When
// ctx ends first, the processes are stopped and the error is the context's cause.
func (s *Sale) Run(ctx context.Context, progress Progress) (*Result, error) {
	c := &crew{spawn: s.cfg.Spawn, redisURL: s.redisURL, progress: progress}
	if err := s.run(ctx, c); err != nil {
		return nil, err
	}
	r := &Result{Config: s.cfg}
	c.fill(r)
	var err error
	if r.Left, err = s.shop.remaining(ctx); err != nil {
		return nil, err
	}
	if r.Receipts, err = s.shop.receipts(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// run has c do its work while Redis is watched.
func (s *Sale) run(ctx context.Context, c *crew) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() {
		if err := s.watch(ctx); err != nil {
			cancel(err)
		}
	})
	err := c.run(ctx, s.cfg.shifts(s.id))
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause // how the processes ended follows from it
	}
	cancel(nil)
	watcher.Wait()
	return err
}

// Close removes every key of the sale from Redis and ends what Open began.
func (s *Sale) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanWithin)
	defer cancel()
	return errors.Join(s.shop.remove(ctx), s.disconnect())
}

func (s *Sale) disconnect() error {
	var err error
	if s.rdb != nil {
		err = s.rdb.Close()
	}
	if s.server != nil {
		s.server.Close()
	}
	return err
}
