package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v3"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// forFlag bounds a survey.
func forFlag() cli.Flag {
	return &cli.DurationFlag{
		Name: "for", Usage: "look for locks for at most `TIME`; by default, until all keys are looked at",
		Validator: func(d time.Duration) error {
			if d <= 0 {
				return errors.New("--for must be positive")
			}
			return nil
		},
	}
}

// survey looks for all locks whose name matches a pattern.
type survey struct {
	prefix, pattern string
	lease           time.Duration
	most            time.Duration // how long it may take; 0: no bound
	terminal        io.Writer     // gets the progress; nil: none

	mu           sync.Mutex
	looked, held int       // guarded by mu: keys, and locks among them
	part         bool      // guarded by mu: not all keys were looked at
	drawn        time.Time // guarded by mu: when the progress was
	end          time.Time // zero: no bound
}

func newSurvey(c *cli.Command, pattern string) *survey {
	return &survey{prefix: c.String("prefix"), pattern: pattern, lease: c.Duration("lease"), most: c.Duration("for")}
}

// shown makes the progress visible if stderr is a terminal.
func (s *survey) shown(c *cli.Command) *survey {
	if w := c.Root().ErrWriter; isTerminal(w) && !c.Bool("quiet") {
		s.terminal = w
	}
	return s
}

// run returns what several servers know of a lock as one look; a minority of them may be down.
func (s *survey) run(ctx context.Context, sites []*site) ([]look, error) {
	begun := time.Now()
	s.looked, s.held, s.part, s.drawn, s.end = 0, 0, false, begun, time.Time{}
	if s.most > 0 {
		s.end = begun.Add(s.most)
	}
	found, errs := make([][]look, len(sites)), make([]error, len(sites))
	var asking sync.WaitGroup
	for i, at := range sites {
		asking.Go(func() { found[i], errs[i] = s.at(ctx, at) })
	}
	asking.Wait()
	if s.drawn != begun {
		fmt.Fprint(s.terminal, "\r\x1b[K")
	}
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
	if len(sites) > 1 {
		return merge(found, sites, s.lease), nil
	}
	return found[0], nil
}

// tellPart says that run has found only a part.
func (s *survey) tellPart(tell teller) {
	if s.part {
		tell.insist("only about %d keys were looked at in %v: there may be more locks", s.looked, s.most)
	}
}

// drawEvery is the time between two lines of progress.
const drawEvery = 200 * time.Millisecond

// progress counts keys and locks, and reports whether to go on.
func (s *survey) progress(keys, locks int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looked, s.held = s.looked+keys, s.held+locks
	now := time.Now()
	if s.terminal != nil && now.Sub(s.drawn) >= drawEvery {
		s.drawn = now
		fmt.Fprintf(s.terminal, "\r\x1b[K%d keys looked at, %d locks", s.looked, s.held)
	}
	s.part = s.part || !s.end.IsZero() && now.After(s.end)
	return !s.part
}

// askDown bounds the question whether a server answers again that was down when the command began.
const askDown = time.Second

// at looks at the locks of one Redis.
func (s *survey) at(ctx context.Context, at *site) ([]look, error) {
	if at.down != nil {
		asking, cancel := context.WithTimeout(ctx, askDown)
		at.down = answers(asking, at.client)
		cancel()
		if at.down != nil {
			return nil, &unavailable{at.down}
		}
	}
	names, err := s.names(ctx, at.client)
	if err != nil {
		return nil, err
	}
	looks, err := s.inspect(ctx, at, names)
	if err != nil {
		return nil, err
	}
	identify(ctx, at.client, s.prefix, looks)
	return looks, nil
}

// names returns those of the keys that hold locks, each of them once.
func (s *survey) names(ctx context.Context, client redis.UniversalClient) (names []string, err error) {
	var mu sync.Mutex
	seen := make(map[string]struct{})
	found := func(mapped string) {
		mu.Lock()
		defer mu.Unlock()
		if _, ok := seen[mapped]; !ok {
			seen[mapped] = struct{}{}
			names = append(names, strings.TrimPrefix(mapped, s.prefix))
		}
	}
	one := func(ctx context.Context, c *redis.Client) error {
		pattern := escapeGlob(s.prefix) + s.pattern
		locks := &sifter{client: c, pattern: pattern, kind: "hash"}
		err := locks.all(ctx, func(looked int, keys []string) bool {
			for _, key := range keys {
				found(key)
			}
			return s.progress(looked, len(keys))
		})
		for _, set := range []string{"{" + pattern + "}:timeout", pattern + ":timeout"} { // names without braces, and with them
			if err != nil || !s.progress(0, 0) {
				break
			}
			semaphores := &sifter{client: c, pattern: set, kind: "zset"}
			err = semaphores.all(ctx, func(_ int, keys []string) bool {
				n := 0
				for _, key := range keys {
					if mapped := semaphoreOf(key); mapped != "" {
						found(mapped)
						n++
					}
				}
				return s.progress(0, n)
			})
		}
		return err
	}
	switch client := client.(type) {
	case *redis.ClusterClient:
		err = client.ForEachMaster(ctx, one)
	case *redis.Client:
		err = one(ctx, client)
	}
	return names, err
}

// semaphoreOf returns the mapped name of the semaphore whose permits a key holds; "": the key has another form.
func semaphoreOf(key string) string {
	base := strings.TrimSuffix(key, ":timeout")
	for _, name := range []string{strings.TrimSuffix(strings.TrimPrefix(base, "{"), "}"), base} {
		if wire.PermitSet(name) == key {
			return name
		}
	}
	return ""
}

// inspectors is how many questions are under way at a time. They travel in a few pipelines, and take the server less than
// two milliseconds.
const inspectors = 64

// inspect looks at the locks of these names, and lets the server rest.
func (s *survey) inspect(ctx context.Context, at *site, names []string) (looks []look, err error) {
	for len(names) > 0 && s.progress(0, 0) {
		begun := time.Now()
		some := names[:min(len(names), inspectors)]
		names = names[len(some):]
		infos, errs := make([]holdfast.Info, len(some)), make([]error, len(some))
		var asking sync.WaitGroup
		for i, name := range some {
			asking.Go(func() { infos[i], errs[i] = inspectAgain(ctx, at, name) })
		}
		asking.Wait()
		for i, info := range infos {
			switch {
			case errors.Is(errs[i], holdfast.ErrInvalidName): // a key that belongs to a lock, or to an application
			case errs[i] != nil:
				return nil, errs[i]
			case info.Kind == holdfast.KindSemaphore && (len(info.Holders) == 0 || len(info.Holders[0].Owner) != 2*wire.PermitBytes): // nor is one that has no permits
			case info.Kind != holdfast.KindFree && info.Kind != holdfast.KindOther:
				looks = append(looks, newLook(info, s.lease))
			}
		}
		if err := rest(ctx, min(time.Since(begun), inspectTime)); err != nil {
			return nil, err
		}
	}
	return looks, nil
}

// inspectTime is at most what a server takes for as many questions as there are inspectors.
const inspectTime = 2 * time.Millisecond

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
