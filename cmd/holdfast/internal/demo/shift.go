package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-go/holdfast"
)

// errStopped ends a process whose parent has closed its input or died.
var errStopped = errors.New("told to stop")

// errLeaseOver: the purchase took longer than the lease could be kept.
var errLeaseOver = errors.New("the lease ended before the sale was written")

// Work runs one shift in this process: it reports on out that it is ready, waits for
// the start on in, lets all its buyers loose at once and reports what they got.
//
// It returns early when ctx is done, when in ends or when a purchase fails for any
// other reason than an empty shelf. It leaves a goroutine reading in, which ends
// when in does.
func Work(ctx context.Context, redisURL string, s Shift, in io.Reader, out io.Writer) (err error) {
	opt, err := parseURL(redisURL)
	if err != nil {
		return err
	}
	rdb := redis.NewClient(opt)
	defer rdb.Close()
	if err := rdb.Ping(ctx).Err(); err != nil { // connected before the race begins
		return fmt.Errorf("connect: %w", err)
	}
	locks, err := holdfast.New(rdb, holdfast.WithLogger(slog.New(slog.DiscardHandler))) // its screen says what happens
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	report := newReporter(out)
	if err := report.send(message{Ready: true}); err != nil {
		return err
	}
	if err := awaitStart(ctx, in, cancel); err != nil {
		return errors.Join(err, locks.Close(context.WithoutCancel(ctx)))
	}
	err = newTeam(s, rdb, locks, report).run(ctx)
	// A lock that is held or asked for is given back even if ctx is done. After that
	// the figures are complete.
	if err = errors.Join(err, locks.Close(context.WithoutCancel(ctx))); err != nil {
		return err
	}
	stats := locks.Stats()
	return report.send(message{Figures: &Figures{stats.Commands, stats.HandedOff}})
}

// awaitStart returns nil when the start line has come. When in ends, then or later,
// it calls cancel.
func awaitStart(ctx context.Context, in io.Reader, cancel context.CancelCauseFunc) error {
	start := make(chan struct{})
	go func() {
		r := bufio.NewReader(in)
		if line, _ := r.ReadString('\n'); line == startLine {
			close(start)
			_, _ = io.Copy(io.Discard, r)
		}
		cancel(errStopped)
	}()
	select {
	case <-start:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// team is the buyers of one process.
type team struct {
	Shift
	shop   *shop
	report *reporter
	guard  func(ctx context.Context, p purchase) error
}

// purchase is what has to be alone in the shop. valid tells whether it still is.
type purchase func(ctx context.Context, valid func() bool) error

func newTeam(s Shift, rdb redis.UniversalClient, locks *holdfast.Manager, report *reporter) *team {
	t := &team{Shift: s, shop: newShop(rdb, s.Sale), report: report}
	if s.Unsafe {
		t.guard = func(ctx context.Context, p purchase) error {
			return p(ctx, func() bool { return true })
		}
		return t
	}
	mutex := locks.Mutex(t.shop.lock)
	t.guard = func(ctx context.Context, p purchase) error {
		return holdfast.Do(ctx, mutex, func(ctx context.Context, lease *holdfast.Lease) error {
			return p(ctx, lease.Valid)
		})
	}
	return t
}

// run sends all buyers into the shop and waits for them. The first error stops them.
func (t *team) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for buyer := t.First; buyer < t.First+t.Count; buyer++ {
		g.Go(func() error {
			outcome, err := t.serve(ctx, buyer)
			if err != nil {
				return fmt.Errorf("buyer %d: %w", buyer, err)
			}
			return t.report.send(message{Outcome: &outcome})
		})
	}
	return g.Wait()
}

// serve is one buyer's visit.
func (t *team) serve(ctx context.Context, buyer int) (Outcome, error) {
	o := Outcome{Buyer: buyer}
	asked := time.Now()
	err := t.guard(ctx, func(ctx context.Context, valid func() bool) error {
		o.Waited = time.Since(asked)
		left, err := t.shop.remaining(ctx)
		if err != nil || left <= 0 {
			return err
		}
		if err := think(ctx, t.Hold); err != nil {
			return err
		}
		if !valid() {
			return errLeaseOver
		}
		r := Receipt{Phone: t.Stock - left + 1, Buyer: buyer, Process: t.Process, Left: left - 1}
		if err := t.shop.sell(ctx, r); err != nil {
			return err
		}
		o.Phone = r.Phone
		return nil
	})
	return o, err
}

// think takes d, or until ctx is done: under a lock that is the end of the lease.
func think(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
