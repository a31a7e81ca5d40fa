package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

// scanBatch is what one SCAN asks for; no call keeps a server for more than a millisecond.
const scanBatch = 1000

// scan calls found with the keys that can be locks, each of them once, from one goroutine.
func scan(ctx context.Context, client redis.UniversalClient, pattern string, found func(key string)) error {
	var mu sync.Mutex
	seen := make(map[string]struct{})
	one := func(ctx context.Context, c redis.Cmdable) error {
		for cursor := uint64(0); ; {
			keys, next, err := c.ScanType(ctx, cursor, pattern, scanBatch, "hash").Result()
			if err != nil {
				return &unavailable{err}
			}
			mu.Lock()
			for _, k := range keys {
				seen[k] = struct{}{}
			}
			mu.Unlock()
			if cursor = next; cursor == 0 {
				return nil
			}
		}
	}
	var err error
	if cluster, ok := client.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return one(ctx, c) })
	} else {
		err = one(ctx, client)
	}
	if err != nil {
		return err
	}
	for k := range seen {
		found(k)
	}
	return nil
}

// inspectors is how many questions are under way at a time. They travel in a few pipelines.
const inspectors = 64

// survey looks at all locks whose name matches the pattern, and keeps those that want does. What several servers know of a
// lock becomes one look; a minority of them may be down.
func survey(ctx context.Context, sites []*site, prefix, pattern string, lease time.Duration, want func(look) bool) ([]look, error) {
	found, errs := make([][]look, len(sites)), make([]error, len(sites))
	var asking sync.WaitGroup
	for i, at := range sites {
		asking.Go(func() { found[i], errs[i] = at.survey(ctx, prefix, pattern, lease) })
	}
	asking.Wait()
	answered := 0
	for i, at := range sites {
		switch err := errs[i]; {
		case err == nil:
			answered++
		case !at.away(err):
			return nil, err
		}
	}
	if answered < majority(sites) {
		return nil, &unavailable{errors.Join(errs...)}
	}
	looks := found[0]
	if len(sites) > 1 {
		looks = merge(found, sites, lease)
	}
	return slices.DeleteFunc(looks, func(l look) bool { return !want(l) }), nil
}

// askDown bounds the question whether a server answers again that was down when the command began.
const askDown = time.Second

// survey looks at the locks of one Redis.
func (at *site) survey(ctx context.Context, prefix, pattern string, lease time.Duration) ([]look, error) {
	if at.down != nil {
		asking, cancel := context.WithTimeout(ctx, askDown)
		at.down = answers(asking, at.client)
		cancel()
		if at.down != nil {
			return nil, &unavailable{at.down}
		}
	}
	var names []string
	err := scan(ctx, at.client, escapeGlob(prefix)+pattern, func(key string) { names = append(names, strings.TrimPrefix(key, prefix)) })
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan string)
	var (
		mu    sync.Mutex
		looks []look // guarded by mu
		wg    sync.WaitGroup
	)
	for range min(inspectors, len(names)) {
		wg.Go(func() {
			for name := range work {
				info, err := inspectAgain(ctx, at, name)
				if errors.Is(err, holdfast.ErrInvalidName) {
					continue // a key that belongs to a lock, or to an application
				}
				if err != nil {
					cancel(err)
					continue
				}
				if info.Kind == holdfast.KindFree || info.Kind == holdfast.KindOther {
					continue
				}
				l := newLook(info, lease)
				mu.Lock()
				looks = append(looks, l)
				mu.Unlock()
			}
		})
	}
	for _, name := range names {
		if ctx.Err() != nil {
			break
		}
		work <- name
	}
	close(work)
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	identify(ctx, at.client, looks)
	return looks, nil
}

// surveyTries is how often a question of a survey is asked: one of 100,000 that a busy server answers late does not end it.
const surveyTries = 3

// inspectAgain asks again if Redis does not answer in time. A Redis that is away ends a survey nevertheless.
func inspectAgain(ctx context.Context, at *site, name string) (info holdfast.Info, err error) {
	for range surveyTries {
		info, err = at.locks.Inspect(ctx, name)
		if err == nil || ctx.Err() != nil || !errors.Is(err, holdfast.ErrUnavailable) || denied(err) {
			break
		}
	}
	return info, err
}

// escapeGlob makes a pattern of SCAN that matches text alone.
func escapeGlob(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}
