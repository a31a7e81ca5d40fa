package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v3"
	"golang.org/x/term"
)

func topCommand() *cli.Command {
	return siteCommand(&cli.Command{
		Name:      "top",
		Usage:     "watch the locks that are held on a full screen",
		ArgsUsage: "[PATTERN]",
		Description: "Keys: s sorts by the next column, f shows all locks, those with waiters or those with something wrong, u frees a lock,\n" +
			"q ends. Without a terminal, or with --once, one frame is printed after two looks.\n\n" +
			"Exit status: 0 done, 1 failed, 2 usage, 5 Redis cannot be reached.",
		Flags: []cli.Flag{
			&cli.StringFlag{
				Name: "sort", Value: sortWaiting, Usage: "sort by `COLUMN` waiting, handoffs, age or ttl",
				Validator: oneOf("--sort", sorts...),
			},
			&cli.DurationFlag{Name: "every", Value: time.Second, Usage: "look every `TIME`"},
			&cli.BoolFlag{Name: "once", Usage: "print one frame"},
			forFlag(), leaseFlag(),
		},
	}, errand{check: checkTop, do: runTop, coded: failure})
}

func checkTop(c *cli.Command) error {
	switch {
	case c.Args().Len() > 1:
		return fmt.Errorf("one pattern is enough, not %d: quote it for the shell", c.Args().Len())
	case c.Duration("every") < shortestWatch:
		return fmt.Errorf("--every must be at least %v", shortestWatch)
	}
	return nil
}

func runTop(ctx context.Context, c *cli.Command, sites []*site) error {
	t := &top{
		sites: sites, all: newSurvey(c, cmp.Or(c.Args().First(), "*")), every: c.Duration("every"),
		sort: c.String("sort"), filter: filterAll, style: styleOf(c, c.Root().Writer), seen: newSightings(),
	}
	out, ok := c.Root().Writer.(*os.File)
	if c.Bool("once") || !ok || !isTerminal(out) {
		return t.once(ctx, c)
	}
	in, ok := c.Root().Reader.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		in = nil // there are no keys
	}
	return t.screen(ctx, in, out)
}

// top is a screen that shows the locks. It belongs to one goroutine.
type top struct {
	sites  []*site
	all    *survey
	every  time.Duration
	sort   string
	filter string
	style  style

	seen   *sightings
	looks  []sighting // of the last look that Redis has answered
	fault  error      // of the last look; nil: there is none
	prompt *string    // what is typed behind "free which lock?"; nil: nothing is being typed
	said   string     // about the last lock that was to be freed
	stale  bool       // the screen shows a lock that was freed
}

// result is what a look has found.
type result struct {
	looks []look
	err   error
	took  time.Duration
}

// survey asks Redis. It uses nothing that changes but the survey, of which one runs at a time.
func (t *top) survey(ctx context.Context) result {
	begun := time.Now()
	looks, err := t.all.run(ctx, t.sites)
	return result{looks, err, time.Since(begun)}
}

// look asks Redis and waits for the answer.
func (t *top) look(ctx context.Context) error {
	r := t.survey(ctx)
	if r.err == nil {
		t.looks = t.seen.add(r.looks, time.Now())
	}
	return r.err
}

// once prints a frame that has rates, so it looks twice.
func (t *top) once(ctx context.Context, c *cli.Command) error {
	if err := t.look(ctx); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(t.every):
	}
	if err := t.look(ctx); err != nil {
		return err
	}
	if _, err := fmt.Fprint(c.Root().Writer, t.frame(0, 0)); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// The alternate screen of a terminal leaves what was there before; the cursor would jump about.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	lineEnd     = "\x1b[K\r\n" // and what an older frame has there is cleared
	frameEnd    = "\x1b[J"
)

// screen draws until q, Ctrl-C or a signal. The first look must succeed; later ones may fail.
func (t *top) screen(ctx context.Context, in, out *os.File) (err error) {
	if err := t.look(ctx); err != nil {
		return err
	}
	keys := make(chan rune)
	if in != nil {
		before, err := term.MakeRaw(int(in.Fd()))
		if err != nil {
			return fmt.Errorf("read keys: %w", err)
		}
		defer func() { err = errors.Join(err, term.Restore(int(in.Fd()), before)) }()
		done := make(chan struct{})
		defer close(done)
		go readKeys(in, keys, done)
	}
	if _, err := fmt.Fprint(out, enterScreen); err != nil {
		return fmt.Errorf("draw: %w", err)
	}
	defer fmt.Fprint(out, leaveScreen)
	ctx, cancel := context.WithCancel(ctx)
	results := make(chan result, 1) // the look that is under way has room, and so ends
	var looking sync.WaitGroup
	defer looking.Wait()
	defer cancel()
	next := time.NewTimer(t.every)
	defer next.Stop()
	for busy := false; ; {
		width, height, _ := term.GetSize(int(out.Fd())) // 0: not known, and nothing is cut
		frame := strings.ReplaceAll(strings.TrimSuffix(t.frame(width, height), "\n"), "\n", lineEnd)
		if _, err := fmt.Fprint(out, "\x1b[H", frame, frameEnd); err != nil {
			return fmt.Errorf("draw: %w", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-next.C:
			if !busy { // so many locks that a look takes long do not make the keys wait
				busy = true
				looking.Go(func() { results <- t.survey(ctx) })
			}
		case r := <-results:
			busy, t.fault = false, r.err
			if r.err == nil {
				t.looks = t.seen.add(r.looks, time.Now())
			}
			next.Reset(max(t.every, restAfter*r.took))
		case key := <-keys:
			if !t.press(ctx, key) {
				return nil
			}
			if t.stale {
				t.stale = false
				next.Reset(0)
			}
		}
	}
}

// readKeys ends with the input, or at the first key after done: a read of a terminal cannot be ended.
func readKeys(in *os.File, keys chan<- rune, done <-chan struct{}) {
	reader := bufio.NewReader(in)
	for {
		key, _, err := reader.ReadRune()
		if err != nil {
			return
		}
		select {
		case keys <- key:
		case <-done:
			return
		}
	}
}

const (
	keyInterrupt = 3 // Ctrl-C, which is no signal on a terminal in raw mode
	keyBackspace = 127
	keyEscape    = 27
	keyEnter     = '\r'
)

// press does what a key asks for, and reports whether to go on.
func (t *top) press(ctx context.Context, key rune) bool {
	if key == keyInterrupt {
		return false
	}
	if t.prompt != nil {
		t.typed(ctx, key)
		return true
	}
	switch key {
	case 'q':
		return false
	case 's':
		t.sort = next(sorts, t.sort)
	case 'f':
		t.filter = next(filters, t.filter)
	case 'u':
		t.prompt, t.said = new(string), ""
	}
	return true
}

// typed is a key of a lock's name. Enter frees that lock.
func (t *top) typed(ctx context.Context, key rune) {
	name := *t.prompt
	switch {
	case key == keyEscape:
		t.prompt = nil
	case key == keyEnter:
		t.prompt = nil
		if name != "" {
			t.said, t.stale = t.free(ctx, name), true
		}
	case key == keyBackspace:
		if runes := []rune(name); len(runes) > 0 {
			*t.prompt = string(runes[:len(runes)-1])
		}
	case key >= ' ':
		*t.prompt += string(key)
	}
}

// free frees the lock of that name for the owner that the screen shows: an owner that has taken it since keeps it.
func (t *top) free(ctx context.Context, name string) string {
	for _, l := range t.looks {
		if name != l.Name && name != printable(l.Name) {
			continue
		}
		if len(l.Holders) == 0 {
			return printable(l.Name) + " has no holder"
		}
		if l.Semaphore != nil {
			return printable(l.Name) + " is a semaphore: holdfast unlock --owner frees one of its permits"
		}
		freed := false
		var failed error
		for _, at := range t.sites {
			i := slices.IndexFunc(l.Holders, func(h lookHolder) bool { return h.Server == at.name })
			if i < 0 {
				continue
			}
			done, err := at.locks.ForceUnlockOf(ctx, l.Name, l.Holders[i].Owner)
			freed, failed = freed || done, errors.Join(failed, err)
		}
		switch {
		case failed != nil:
			return plain(failed)
		case !freed:
			return printable(l.Name) + " has another owner by now"
		}
		return printable(l.Name) + " is freed: make sure that its holder is dead"
	}
	return "the screen shows no lock " + printable(name)
}

// next returns the value behind this one.
func next(values []string, value string) string {
	for i, v := range values {
		if v == value {
			return values[(i+1)%len(values)]
		}
	}
	return values[0]
}
