// Package locktest is the suite that every kind of lock passes: what the invariants
// promise of a lock, each scenario as a test against a real server with real faults.
//
// Tests only. It imports the root package, which nothing else below internal may do.
package locktest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Kind is a kind of lock under test.
type Kind struct {
	Name string
	Lock func(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker
	// Async is LockAsync of the same lock; nil if the kind has none.
	Async func(l holdfast.Locker, ctx context.Context) <-chan holdfast.Result
	// Places says that each waiter has a place of its own in Redis's queue, and the
	// order is kept there; otherwise the waiters of a process share one.
	Places bool
	// Write says that it is the write side of a read-write lock.
	Write bool
	// Confirms says that every grant by the server is asked about.
	Confirms bool
	// Options are those of all managers, in front of a scenario's own.
	Options []holdfast.Option
	// Client makes the managers' clients; nil: redis.NewClient.
	Client func(opt *redis.Options) redis.UniversalClient
}

// Run runs the whole suite, or only some groups of it.
func Run(t *testing.T, k Kind, only ...string) {
	for _, group := range []struct {
		name      string
		scenarios map[string]func(*Env)
	}{
		{"acquire", acquireScenarios},
		{"release", releaseScenarios},
		{"lease", leaseScenarios},
		{"wait", waitScenarios},
		{"fault", faultScenarios},
		{"hygiene", hygieneScenarios},
		{"corner", cornerScenarios},
		{"grant", grantScenarios},
		{"host", hostScenarios},
		{"fair", fairScenarios},
		{"redisson", redissonScenarios},
	} {
		if len(only) > 0 && !slices.Contains(only, group.name) ||
			(group.name == "fair" || group.name == "redisson") && !k.Places {
			continue
		}
		for name, scenario := range group.scenarios {
			t.Run(group.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				scenario(&Env{T: t, kind: k, Key: "locktest:" + name})
			})
		}
	}
}

// Env is one scenario's surroundings: a server of its own, managers, a lock name.
type Env struct {
	*testing.T
	Key  string // the name of the lock, and its key
	kind Kind
	srv  *redistest.Server

	mu       sync.Mutex
	managers []*holdfast.Manager // guarded by mu
}

var bg = context.Background()

// Times of the suite. A bound on time tells what is right on a slow machine from what is
// wrong on a fast one, so it lies between the two: scenarios make the wrong slow, with
// leases of a minute and waiters that do not poll.
const (
	// lease is the usual one: a holder that died must be outlived by tests, and one that
	// lives must renew it on a busy machine. An Unlock waits for a quarter of it, a second
	// at the most.
	lease = 4 * time.Second
	// patience is for what comes, or never does.
	patience = 15 * time.Second
	// prompt is for what waits for nobody. What waits for Redis to answer waits for 5 s,
	// go-redis's time-out for reading.
	prompt = 2 * time.Second
	// claim is how long a release makes a waiter the owner who has not said that it knows,
	// and lostClaim what tells that somebody had to wait for the end of one.
	claim     = 2 * time.Second
	lostClaim = claim * 3 / 4
)

// byMessage are options of managers whose callers find out nothing by themselves while
// patience lasts, neither by polling nor by keeping their places nor when a lease ends.
var byMessage = []holdfast.Option{
	holdfast.WithPollInterval(time.Hour), holdfast.WithFairPatience(time.Hour), holdfast.WithLease(time.Hour),
}

// Server returns the scenario's server, started at the first call. An AOF server keeps
// its data over restarts.
func (e *Env) Server(opts ...redistest.ServerOption) *redistest.Server {
	if e.srv == nil {
		e.srv = redistest.Start(e, opts...)
	}
	return e.srv
}

// Manager returns a new manager on a client of its own with default options.
func (e *Env) Manager(opts ...holdfast.Option) *holdfast.Manager {
	return e.ManagerOn(e.client(e.Server().Options()), opts...)
}

// Via returns a new manager whose client goes through a proxy, and the proxy.
func (e *Env) Via(opts ...holdfast.Option) (*holdfast.Manager, *redistest.Proxy) {
	p := e.Server().Proxy(e)
	return e.ManagerOn(e.client(p.Options()), opts...), p
}

// client returns a new client of the kind's class, closed at the end.
func (e *Env) client(opt *redis.Options) redis.UniversalClient {
	var c redis.UniversalClient
	if e.kind.Client != nil {
		c = e.kind.Client(opt)
	} else {
		c = redis.NewClient(opt)
	}
	e.Cleanup(func() { _ = c.Close() })
	return c
}

// ManagerOn returns a new manager on client, closed at the end.
func (e *Env) ManagerOn(client redis.UniversalClient, opts ...holdfast.Option) *holdfast.Manager {
	e.Helper()
	// The suite speaks for Redisson with plain messages; sharded ones have tests of their own.
	all := append([]holdfast.Option{holdfast.WithLease(lease), holdfast.WithPublishMode(holdfast.PublishClassic)}, e.kind.Options...)
	m, err := holdfast.New(client, append(all, opts...)...)
	if err != nil {
		e.Fatal(err)
	}
	e.mu.Lock()
	e.managers = append(e.managers, m)
	e.mu.Unlock()
	e.Cleanup(func() {
		ctx, cancel := context.WithTimeout(bg, 10*time.Second)
		defer cancel()
		_ = m.Close(ctx) // scenarios that care close it themselves
	})
	return m
}

// Lock returns the scenario's lock as m sees it.
func (e *Env) Lock(m *holdfast.Manager, opts ...holdfast.LockOption) holdfast.Locker {
	return e.kind.Lock(m, e.Key, opts...)
}

// MustLock takes the lock or fails.
func (e *Env) MustLock(l holdfast.Locker) *holdfast.Lease {
	e.Helper()
	ctx, cancel := context.WithTimeout(bg, patience)
	defer cancel()
	got, err := l.Lock(ctx)
	if err != nil {
		e.Fatalf("Lock: %v", err)
	}
	return got
}

// Locking locks in a goroutine. Where that fails it says so, and there is no lease.
func (e *Env) Locking(l holdfast.Locker) <-chan *holdfast.Lease {
	got := make(chan *holdfast.Lease, 1)
	go func() {
		ctx, cancel := context.WithTimeout(bg, patience)
		defer cancel()
		lease, err := l.Lock(ctx)
		if err != nil {
			e.Errorf("Lock: %v", err)
		}
		got <- lease
	}()
	return got
}

// MustUnlock unlocks or fails. A machine may be too slow for the second that Unlock
// waits; the release goes on, and the next Unlock tells how it has ended.
func (e *Env) MustUnlock(l *holdfast.Lease) {
	e.Helper()
	if l == nil {
		e.FailNow() // Locking has said why
	}
	var err error
	e.Eventually("Unlock is told", func() bool {
		err = l.Unlock(bg)
		return !errors.Is(err, holdfast.ErrUnavailable)
	})
	if err != nil {
		e.Fatalf("Unlock: %v", err)
	}
}

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
	select {
	case <-l.Done():
	case <-time.After(patience):
		e.Fatalf("not told of the loss within %v", patience)
	}
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

// promptly fails unless it is just after the deadline of a lease that has ended, and
// returns how long after.
func (e *Env) promptly(deadline time.Time) time.Duration {
	e.Helper()
	late := time.Since(deadline)
	if late < 0 || late > prompt {
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
	deadline := time.Now().Add(limit)
	for !ok() {
		if time.Now().After(deadline) {
			e.Fatalf("not within %v: %s", limit, what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// Parked waits until n callers wait at m.
func (e *Env) Parked(m *holdfast.Manager, n int) {
	e.Helper()
	e.Eventually(fmt.Sprintf("%d callers wait", n), func() bool { return m.Stats().Waiting == n })
}

// Listening waits until n processes hear of grants by the server.
func (e *Env) Listening(n int64) {
	e.Helper()
	e.Eventually("the waiter listens", func() bool { return e.inboxes() == n && !e.deaf() })
}

// deaf reports whether Redis takes a waiter for one that hears no inbox.
func (e *Env) deaf() bool {
	for _, prefix := range []string{"redisson_lock_timeout:{", "holdfast_rw_timeout:{"} {
		for _, z := range e.srv.Admin().ZRangeWithScores(bg, prefix+e.Key+"}", 0, -1).Val() {
			if z.Score != math.Floor(z.Score) {
				return true
			}
		}
	}
	return false
}

// inboxes returns how many inboxes are subscribed.
func (e *Env) inboxes() (n int64) {
	for _, c := range e.srv.Admin().PubSubChannels(bg, "holdfast_inbox:*").Val() {
		n += e.srv.NumSub(c)
	}
	return n
}

// HeldByRedisson makes the named lock one that a client of Redisson holds, until the
// function it returns releases it as Redisson does.
func (e *Env) HeldByRedisson(name string) (release func()) {
	e.Helper()
	admin := e.Server().Admin()
	const owner = "5c6a0a3c-0f5e-4a37-9f1f-0d8f9c6b1a11:63"
	fields, message := []any{owner, 1}, "0"
	if e.kind.Write {
		fields, message = []any{"mode", "write", owner + ":write", 1}, "1"
	}
	if err := admin.HSet(bg, name, fields...).Err(); err != nil {
		e.Fatal(err)
	}
	admin.PExpire(bg, name, time.Hour)
	return func() {
		admin.Del(bg, name)
		admin.Publish(bg, e.Channel(name), message)
	}
}

// Holders returns who holds the lock in Redis, and how often.
func (e *Env) Holders() map[string]string {
	e.Helper()
	fields, err := e.srv.Admin().HGetAll(bg, e.Key).Result()
	if err != nil {
		e.Fatal(err)
	}
	delete(fields, "mode")
	return fields
}

// Free fails unless another client gets the lock at once, and leaves it free.
func (e *Env) Free() {
	e.Helper()
	l, err := e.Lock(e.Manager()).TryLock(bg)
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
	if err != nil {
		e.Fatal(err)
	}
	return d
}

// Clean fails unless the server is soon without any trace of locks but those allowed:
// tombstones are, where a request was given up whose reply had not come.
func (e *Env) Clean(m *holdfast.Manager, allow ...string) {
	e.Helper()
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
	e.within(prompt, "no keys", func() bool {
		for _, k := range e.srv.Keys() {
			if !slices.ContainsFunc(allow, func(p string) bool { return strings.HasPrefix(k, p) }) {
				return false // the release of a lease that was lost goes on after Unlock
			}
		}
		return true
	})
	e.srv.RequireTTLs(e, Tokens)
	e.Eventually("no subscription", func() bool { return e.srv.NumSub(e.Channel(e.Key))+e.inboxes() == 0 })
}

// troubled reports whether a manager has taken a request for lost.
func (e *Env) troubled() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.managers, func(m *holdfast.Manager) bool { return m.Stats().Troubles > 0 })
}

// Tombstones is the prefix of the keys that refuse late copies of a request.
const Tombstones = "holdfast_tombstones:"

// Tokens is the prefix of the fencing counters, the only keys without TTL.
const Tokens = "redisson_lock_token:"

// Channel is the channel on which Redisson announces releases of the named lock, which
// has no braces in its name.
func (e *Env) Channel(name string) string {
	if e.kind.Write {
		return "redisson_rwlock:{" + name + "}"
	}
	return Channel(name)
}

// Channel is that of a mutex.
func Channel(name string) string { return "redisson_lock__channel:{" + name + "}" }

// Section is code that must not run twice at a time. Its counter is not protected by
// anything but the lock, so the race detector watches as well.
type Section struct {
	inside atomic.Int32
	n      int
}

// Enter runs the section and fails if somebody is in it.
func (s *Section) Enter(t testing.TB, hold time.Duration) {
	if s.inside.Add(1) != 1 {
		t.Error("two holders at a time")
	}
	s.n++
	if hold > 0 {
		time.Sleep(hold) // work, not waiting for anything
	}
	s.inside.Add(-1)
}
