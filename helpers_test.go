package holdfast_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// patience is for what comes, or never does. Nothing that a test waits for comes by itself
// meanwhile: the usual lease is twice as long.
const patience = 15 * time.Second

// managerOn returns a manager on srv that is closed with the test.
func managerOn(t testing.TB, srv *redistest.Server, opts ...holdfast.Option) *holdfast.Manager {
	t.Helper()
	m, err := holdfast.New(srv.Client(t), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m
}

func mustLock(t testing.TB, l holdfast.Locker) *holdfast.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lease, err := l.Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// waits locks l in the background. What it returns waits for the lease.
func waits(t *testing.T, l holdfast.Locker) func() *holdfast.Lease {
	t.Helper()
	got := make(chan holdfast.Result, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		lease, err := l.Lock(ctx)
		got <- holdfast.Result{Lease: lease, Err: err}
	}()
	return func() *holdfast.Lease {
		t.Helper()
		r := <-got
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		return r.Lease
	}
}

func mustUnlock(t testing.TB, l *holdfast.Lease) {
	t.Helper()
	if err := unlock(l); err != nil {
		t.Fatal(err)
	}
}

func mustExtend(t testing.TB, l *holdfast.Lease, d time.Duration) {
	t.Helper()
	if err := untilAnswered(func() error { return l.Extend(context.Background(), d) }); err != nil {
		t.Fatal(err)
	}
}

func unlock(l *holdfast.Lease) error {
	return untilAnswered(func() error { return l.Unlock(context.Background()) })
}

// inspected is what Inspect of m tells about a lock.
func inspected(t testing.TB, m *holdfast.Manager, name string) (info holdfast.Info) {
	t.Helper()
	err := untilAnswered(func() (err error) { info, err = m.Inspect(context.Background(), name); return err })
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// lastingKeys are the keys on srv without tombstones: a request that a slow machine has delayed leaves one.
func lastingKeys(srv *redistest.Server) []string {
	return slices.DeleteFunc(srv.Keys(), func(key string) bool { return strings.HasPrefix(key, "holdfast_tombstones:") })
}

// untilAnswered calls ask until it returns anything but ErrUnavailable: a machine may stand still for longer than
// the second in which Redis has to answer.
func untilAnswered(ask func() error) error {
	for end := time.Now().Add(patience); ; {
		err := ask()
		if !errors.Is(err, holdfast.ErrUnavailable) || time.Now().After(end) {
			return err
		}
		time.Sleep(2 * time.Millisecond) // one that is denied is told so at once
	}
}

func wantErr(t *testing.T, err error, is, not error) {
	t.Helper()
	if !errors.Is(err, is) || not != nil && errors.Is(err, not) {
		t.Errorf("%v, want %v and not %v", err, is, not)
	}
}

// section is how long they stay inside, about a round trip: long enough to meet another.
const section = 500 * time.Microsecond

// alone takes locks that exclude each other in loops, each in a goroutine of its own. It
// fails if two are held at a time, if one does not get on, or none for a while.
func alone(t *testing.T, rounds int, locks ...holdfast.Locker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var inside atomic.Int32
	var mu sync.Mutex // guards the following
	var longest time.Duration
	last := time.Now() // when somebody came in
	var wg sync.WaitGroup
	for i, l := range locks {
		wg.Go(func() {
			for round := range rounds {
				lease, err := l.Lock(ctx)
				if err != nil {
					t.Errorf("%d in round %d: %v", i, round, err)
					return
				}
				if inside.Add(1) != 1 {
					t.Errorf("%d in round %d is not alone", i, round)
				}
				mu.Lock()
				now := time.Now()
				longest, last = max(longest, now.Sub(last)), now
				mu.Unlock()
				<-time.After(rand.N(section))
				inside.Add(-1)
				if err := unlock(lease); err != nil {
					t.Errorf("%d in round %d: %v", i, round, err)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("longest time without a grant: %v", longest)
	if longest > patience { // a lock that was left behind is free after 30 s
		t.Errorf("nobody got the lock for %v", longest)
	}
}
