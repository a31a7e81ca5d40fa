package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v3"

	"github.com/holdfast-go/holdfast"
)

// Exit statuses of the commands that look, beyond exitFailed and exitUsage.
const (
	exitNo          = 3 // the answer is no
	exitRefused     = 4 // nothing was done
	exitUnreachable = 5 // Redis cannot be reached
)

// coded is an error with the exit status that says what it means.
type coded struct {
	error
	status int
}

func (c *coded) ExitCode() int { return c.status }
func (c *coded) Unwrap() error { return c.error }

// failure gives err the exit status that it has by its kind, if it has none yet.
func failure(err error) error {
	usage, away, done := (*badUsage)(nil), (*unavailable)(nil), cli.ExitCoder(nil)
	switch {
	case err == nil, errors.As(err, &done):
		return err
	case errors.As(err, &usage), errors.Is(err, holdfast.ErrInvalidName), errors.Is(err, holdfast.ErrInvalidOption):
		return &coded{err, exitUsage}
	case errors.As(err, &away), errors.Is(err, holdfast.ErrUnavailable):
		return &coded{err, exitUnreachable}
	}
	return &coded{err, exitFailed}
}

// look is what is known of one lock, for people and as JSON. Durations are in ms; -1 is no TTL.
type look struct {
	Name      string       `json:"name"`
	NameBytes []byte       `json:"nameBytes,omitempty"` // if the name is not UTF-8
	Kind      string       `json:"kind"`
	Held      bool         `json:"held"`
	Holders   []lookHolder `json:"holders"`
	More      int          `json:"moreHolders"`
	TTL       int64        `json:"ttl"`
	Waiting   int          `json:"waiting"`
	Overdue   int          `json:"overdue"`
	Token     uint64       `json:"token"`
	State     string       `json:"state"`
	Since     int64        `json:"notRenewedFor,omitempty"` // if the state is expiring
	Queue     []string     `json:"queue,omitempty"`
	Broken    []lookBroken `json:"broken,omitempty"`
	Server    string       `json:"server,omitempty"` // if several are asked
	*Place                 // nil: not looked at
}

type lookHolder struct {
	Owner    string `json:"owner"`
	Write    bool   `json:"write"`
	Holdfast bool   `json:"holdfast"`
	TTL      int64  `json:"ttl"`

	Process *Process `json:"process,omitempty"` // nil: it does not say what it is
}

type lookBroken struct {
	Key   string `json:"key"`
	Holds string `json:"holds"`
}

// States of a lock.
const (
	stateFree     = "free"
	stateOK       = "ok"
	stateExpiring = "expiring" // less than two thirds of a lease are left: the holder is dead or cut off
	stateNoTTL    = "no TTL"   // it is held for good
	stateStale    = "queue stale"
	stateWriter   = "writer waits"
	stateOther    = "no lock"
)

// newLook judges info by the lease that the programs use.
func newLook(info holdfast.Info, lease time.Duration) look {
	l := look{
		Name: info.Name, NameBytes: notUTF8(info.Name), Kind: string(info.Kind), Held: info.Held, Holders: []lookHolder{},
		More: info.More, TTL: milliseconds(info.TTL), Waiting: info.Waiters, Overdue: info.Overdue, Token: info.Token,
	}
	for _, h := range info.Holders {
		l.Holders = append(l.Holders, lookHolder{Owner: h.Owner, Write: h.Write, Holdfast: h.Holdfast, TTL: milliseconds(h.TTL)})
	}
	for _, b := range info.Broken {
		l.Broken = append(l.Broken, lookBroken{b.Key, b.Holds})
	}
	switch {
	case info.Kind == holdfast.KindOther:
		l.State = stateOther
	case info.Kind == holdfast.KindFree:
		l.State = stateFree
	case info.TTL < 0:
		l.State = stateNoTTL
	case info.TTL < lease/3:
		l.State, l.Since = stateExpiring, (lease - info.TTL).Milliseconds()
	case info.Overdue > 0:
		l.State = stateStale
	case info.Kind == holdfast.KindRead && info.Waiters > 0:
		l.State = stateWriter
	default:
		l.State = stateOK
	}
	return l
}

// milliseconds keeps -1, no TTL.
func milliseconds(d time.Duration) int64 {
	if d < 0 {
		return -1
	}
	return d.Milliseconds()
}

func notUTF8(name string) []byte {
	if strings.ToValidUTF8(name, "") == name {
		return nil
	}
	return []byte(name)
}

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

// survey looks at all locks whose name matches the pattern, and keeps those that want does.
func survey(ctx context.Context, at *site, prefix, pattern string, lease time.Duration, want func(look) bool) ([]look, error) {
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
	return slices.DeleteFunc(looks, func(l look) bool { return !want(l) }), nil
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
