package locktest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/seam"
)

// WantErr fails unless err matches all targets.
func (e *Env) WantErr(err error, targets ...error) {
	e.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			e.Errorf("error %v does not match %v", err, target)
		}
	}
}

// WantNotErr fails if err matches any of the targets.
func (e *Env) WantNotErr(err error, targets ...error) {
	e.Helper()
	for _, target := range targets {
		if errors.Is(err, target) {
			e.Errorf("error %v matches %v", err, target)
		}
	}
}

// WantLost waits until lease has ended and fails unless that is a loss.
func (e *Env) WantLost(l *holdfast.Lease, reasons ...holdfast.LostReason) {
	e.Helper()
	redistest.Next(e, l.Done(), "not told of the loss")
	var lost *holdfast.LostError
	if !errors.As(l.Err(), &lost) {
		e.Fatalf("Err() = %v, want a LostError", l.Err())
	}
	for _, r := range reasons {
		if lost.Reason == r {
			return
		}
	}
	e.Errorf("lost with reason %q, want one of %q", lost.Reason, reasons)
}

// bound is what something may take that takes at most d: that in fake time, which is exact, and patience more on
// a real server, since a machine may stand still.
func (e *Env) bound(d time.Duration) time.Duration {
	if e.kind.Virtual {
		return d
	}
	return d + patience
}

// excused reports whether that a machine stood still explains err: Redis did not answer in time, or a lease was not
// renewed by its deadline. In fake time nothing does.
func (e *Env) excused(err error) bool { return !e.kind.Virtual && StoodStill(err) }

// promptly fails unless it is just after the deadline of a lease that has ended, and
// returns how long after.
func (e *Env) promptly(deadline time.Time) time.Duration {
	e.Helper()
	late := time.Since(deadline)
	if late < 0 || late > e.bound(prompt) {
		e.Errorf("told of the end %v after the deadline", late)
	}
	return late
}

// Worst reports a figure of a promise, "<promise>:<what>", of which the largest counts.
// tools/figures collects them.
func (e *Env) Worst(what string, d time.Duration) {
	e.Attr(what, d.Round(100*time.Microsecond).String())
}

// Eventually waits for something that has no event of its own, mostly a state of the
// server, and fails if it does not come.
func (e *Env) Eventually(what string, ok func() bool) {
	e.Helper()
	e.within(patience, what, ok)
}

// within is Eventually for what a TTL would bring about later.
func (e *Env) within(limit time.Duration, what string, ok func() bool) {
	e.Helper()
	redistest.Eventually(e, limit, what, ok)
}

// Parked waits until n callers wait at m.
func (e *Env) Parked(m *holdfast.Manager, n int) {
	e.Helper()
	e.Eventually(fmt.Sprintf("%d callers wait", n), func() bool { return m.Stats().Waiting == n })
}

// Renews waits until m has renewed n times.
func (e *Env) Renews(m *holdfast.Manager, n uint64) {
	e.Helper()
	before := m.Stats().Renewals
	e.Eventually(fmt.Sprintf("%d renewals", n), func() bool { return m.Stats().Renewals >= before+n })
}

// Listening waits until n processes hear of grants by the server.
func (e *Env) Listening(n int64) {
	e.Helper()
	e.Eventually("the waiter listens", func() bool { return e.inboxes() == n && !e.deaf(e.Key) })
}

// deaf reports whether Redis takes a waiter for one that hears no inbox.
func (e *Env) deaf(name string) bool {
	return slices.ContainsFunc(e.kept(name), func(kept float64) bool { return kept != math.Floor(kept) })
}

// attentive reports whether there is a waiter, and Redis takes each for one that hears its inbox.
func (e *Env) attentive(name string) bool { return len(e.kept(name)) > 0 && !e.deaf(name) }

// kept returns until when the places in the named lock's queue are kept.
func (e *Env) kept(name string) (until []float64) {
	for _, prefix := range []string{"redisson_lock_timeout:{", "holdfast_rw_timeout:{", "holdfast_permit_timeout:{"} {
		for _, z := range e.srv.Admin().ZRangeWithScores(bg, prefix+name+"}", 0, -1).Val() {
			until = append(until, z.Score)
		}
	}
	return until
}

// inboxes returns how many inboxes are subscribed.
func (e *Env) inboxes() (n int64) {
	for _, c := range e.srv.Admin().PubSubChannels(bg, "holdfast_inbox:*").Val() {
		n += e.srv.NumSub(c)
	}
	return n
}

// Holders returns who holds the lock in Redis, and how often.
func (e *Env) Holders() map[string]string {
	e.Helper()
	fields, err := e.srv.Admin().HGetAll(bg, e.Key).Result()
	redistest.Must(e, err)
	delete(fields, "mode")
	return fields
}

// Free fails unless another client gets the lock at once, and leaves it free.
func (e *Env) Free() {
	e.Helper()
	l, err := e.TryLock(e.Lock(e.Manager()))
	if err != nil {
		e.Fatalf("the lock is not free: %v", err)
	}
	e.MustUnlock(l)
}

// PTTL returns the TTL of the lock's key in Redis: -2 ns if there is no key, -1 ns if it
// has no TTL.
func (e *Env) PTTL() time.Duration {
	e.Helper()
	d, err := e.srv.Admin().PTTL(bg, e.Key).Result()
	redistest.Must(e, err)
	return d
}

// Clean fails unless the server is soon without any trace of locks but those allowed:
// tombstones are, where a request was given up whose reply had not come.
func (e *Env) Clean(m *holdfast.Manager, allow ...string) {
	e.Helper()
	lasting := []string{Tokens}
	if e.kind.Permits {
		lasting = append(lasting, e.Key)
		allow = append(allow, e.Key)
		defer e.wantPermits(Permits)
	}
	if e.troubled() { // by a slow machine, if by nothing else
		allow = append(allow, Tombstones)
	}
	defer func() {
		if e.Failed() {
			e.Logf("%+v", m.Stats())
		}
	}()
	e.Eventually("nothing known of any lock", func() bool {
		s := m.Stats()
		return s.Locks == 0 && s.Held == 0 && s.Waiting == 0 && s.Subscriptions == 0
	})
	defer func() {
		if e.Failed() {
			e.Logf("keys: %q", e.srv.Keys())
		}
	}()
	e.within(e.bound(prompt), "no keys", func() bool {
		for _, k := range e.srv.Keys() {
			if !slices.ContainsFunc(allow, func(p string) bool { return strings.HasPrefix(k, p) }) {
				return false // the release of a lease that was lost goes on after Unlock
			}
		}
		return true
	})
	e.srv.RequireTTLs(e, lasting...)
	e.Eventually("no subscription", func() bool { return e.srv.NumSub(e.Channel(e.Key))+e.inboxes() == 0 })
}

// troubled reports whether a manager has taken a request for lost.
func (e *Env) troubled() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.managers, func(m *holdfast.Manager) bool { return m.Stats().Troubles > 0 })
}

// Section is code that must not run twice at a time. Its counter is not protected by
// anything but the lock, so the race detector watches as well.
type Section struct {
	inside atomic.Int32
	n      int
}

// Enter runs the section and fails if another caller is in it.
func (s *Section) Enter(t testing.TB, hold time.Duration) {
	redistest.Want(t, s.inside.Add(1), 1, "two holders at a time")
	s.n++
	if hold > 0 {
		time.Sleep(hold) // work, not waiting for anything
	}
	s.inside.Add(-1)
}

// limitedOptions are those of a client of a user who may do everything at first; allow changes that.
func limitedOptions(t testing.TB, srv *redistest.Server) (opt *redis.Options, allow func(rules ...any)) {
	t.Helper()
	allow = func(rules ...any) {
		t.Helper()
		redistest.Must(t, srv.Admin().Do(context.Background(), append([]any{"ACL", "SETUSER", "limited"}, rules...)...).Err())
	}
	allow("reset", "on", ">secret", "~*", "&*", "+@all")
	opt = srv.Options()
	opt.Username, opt.Password = "limited", "secret"
	return opt, allow
}

// LimitedOn returns a client of a user who may do everything at first, and a function that changes that.
func LimitedOn(t testing.TB, srv *redistest.Server) (client *redis.Client, allow func(rules ...any)) {
	t.Helper()
	opt, allow := limitedOptions(t, srv)
	client = redis.NewClient(opt)
	t.Cleanup(func() { client.Close() })
	return client, allow
}

// EndsClosed fails unless a call ends soon, and because the client is closed.
func EndsClosed(t testing.TB, what string, call func() error) {
	t.Helper()
	failed := redistest.Begin(func() error { return call() })
	select {
	case err := <-failed:
		WantErr(t, err, holdfast.ErrUnavailable, nil)
		WantErr(t, err, redis.ErrClosed, holdfast.ErrNotAcquired)
	case <-time.After(Patience):
		t.Errorf("%s waits", what)
	}
}

// Hears reports whether the only waiter for the fair lock "a", one of m, has asked again since it hears messages.
func Hears(t testing.TB, srv *redistest.Server, m *holdfast.Manager) bool {
	places := srv.Admin().ZRangeWithScores(t.Context(), "redisson_lock_timeout:{a}", 0, -1).Val()
	return len(places) == 1 && places[0].Score == math.Trunc(places[0].Score) && Pending(m) == 0
}

// ConfirmGrants makes a manager trust no grant by the server without asking Redis.
func ConfirmGrants() holdfast.Option { return tuned(func(c *engine.Config) { c.Confirm = true }) }

// StepAside makes a caller that comes back at once to a manager ask after d; see aside.go of internal/lock.
func StepAside(d time.Duration) holdfast.Option { return tuned(func(c *engine.Config) { c.Aside = d }) }

// Readmission makes a manager take a missing right for final after d; see trouble.go of the engine.
func Readmission(d time.Duration) holdfast.Option {
	return tuned(func(c *engine.Config) { c.Readmission = d })
}

func tuned(tune func(*engine.Config)) holdfast.Option { return seam.Tune(tune).(holdfast.Option) }

// Pending is how many requests and releases of m are under way.
func Pending(m *holdfast.Manager) int { return seam.Engine(m).Pending() }

// Deserted is how many channels m is to look at because they have no listeners any more.
func Deserted(m *holdfast.Manager) int { return seam.Engine(m).Subscriber.Deserted() }
