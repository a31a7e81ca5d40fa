package contender

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Each recipe is shown with the fault it is known for, and each fault is shown to be
// none of Holdfast's by the same test.

const (
	// shortLease is renewed in time on a slow machine, also by the guard, which has a fifth of it.
	shortLease = 4 * time.Second
	// patience is how long a test waits for what must happen; what must not has time
	// enough in more than two leases.
	patience = 10 * time.Second
	leases   = shortLease * 5 / 2
)

// fault is one way to fail: show reports whether the library does.
type fault struct {
	name   string
	show   func(t *testing.T, l Library) bool
	failed []string // those with the fault
	proof  []string // those without
}

func TestFaultsOfRecipes(t *testing.T) {
	libraries = append(libraries, Library{
		Name: "holdfast-maxhold", Open: openHoldfast(mutexes, holdfast.WithMaxHold(shortLease)), Role: Own,
	})
	t.Cleanup(func() { libraries = libraries[:len(libraries)-1] })
	for _, f := range []fault{
		{"two are inside when work takes longer than the lease", oversells,
			[]string{"r2-expire", "r3-getset", "r4-set", "r5-token", "r7-hash", "redsync"},
			[]string{Ours, "r1-setnx", "r6-guard", "r8-pubsub", "rueidislock"}},
		{"who is late deletes the lock of another", deletesAnothers,
			[]string{"r1-setnx", "r2-expire", "r3-getset", "r4-set"},
			[]string{Ours, "r5-token", "r6-guard", "r7-hash", "r8-pubsub"}},
		{"a crash while it is held leaves the lock for ever", survivesItsHolder,
			[]string{"r1-setnx"},
			[]string{Ours, "r2-expire", "r3-getset", "r4-set", "r5-token", "r6-guard", "r7-hash", "r8-pubsub"}},
		{"a crash between two commands leaves the lock for ever", survivesHalfALock,
			[]string{"r2-expire"},
			[]string{Ours, "r4-set"}},
		{"a holder that never finishes keeps the lock for ever", neverEnds,
			[]string{"r6-guard", "r8-pubsub"},
			[]string{"holdfast-maxhold"}},
		{"a lost message costs the rest of the lease", sleepsThroughARelease,
			[]string{"r8-pubsub"},
			[]string{Ours}},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel() // they wait for leases
			check := func(names []string, want bool) {
				for _, l := range Pick(names...) {
					t.Run(l.Name, func(t *testing.T) {
						t.Parallel()
						if got := f.show(t, l); got != want {
							t.Errorf("%s has the fault: %v, want %v", l.Name, got, want)
						}
					})
				}
			}
			check(f.failed, true)
			check(f.proof, false)
		})
	}
}

func oversells(t *testing.T, l Library) bool {
	srv := redistest.Start(t, redistest.WithoutPassword())
	a, b := connect(t, l, srv), connect(t, l, srv)
	_ = obtain(t, a)
	_, err := lockWithin(3*shortLease, b) // the longest hold, and what is then left of its lease
	return err == nil
}

func deletesAnothers(t *testing.T, l Library) bool {
	srv := redistest.Start(t, redistest.WithoutPassword())
	a, b, c := connectLong(t, l, srv), connectLong(t, l, srv), connectLong(t, l, srv)
	late := obtain(t, a)
	// To a it is as if its lease had run out.
	if err := srv.Admin().Del(t.Context(), lockName).Err(); err != nil {
		t.Fatal(err)
	}
	_ = obtain(t, b)
	_ = late(t.Context()) // the better ones say that the lock was not the caller's
	_, err := lockWithin(shortLease, c)
	return err == nil
}

func survivesItsHolder(t *testing.T, l Library) bool {
	srv := redistest.Start(t, redistest.WithoutPassword())
	p := redistest.StartProcess(t, holderRole, l.Name, srv.Addr())
	p.Expect(t, "held")
	p.Kill()
	return isDead(t, l, srv)
}

func survivesHalfALock(t *testing.T, l Library) bool {
	srv := redistest.Start(t, redistest.WithoutPassword())
	proxy := srv.Proxy(t)
	// Whatever comes after a command that took the lock does not get through.
	took := func(cmd []string) bool { return redistest.Containing(lockName)(cmd) }
	second := proxy.HoldFirstRequest(redistest.Command("pexpire"))
	first := proxy.HoldFirstReply(took)
	p := redistest.StartProcess(t, holderRole, l.Name, proxy.Addr())
	first.Wait(t)
	if l.Name == "r2-expire" {
		first.Release()
		second.Wait(t)
	}
	// A process that is gone sends nothing more, and neither does a connection that is cut.
	proxy.Cut()
	p.Kill()
	return isDead(t, l, srv)
}

// isDead reports whether no caller gets the lock that its holder has left.
func isDead(t *testing.T, l Library, srv *redistest.Server) bool {
	_, err := lockWithin(leases, connect(t, l, srv))
	return err != nil
}

func neverEnds(t *testing.T, l Library) bool {
	srv := redistest.Start(t, redistest.WithoutPassword())
	a, b := connect(t, l, srv), connect(t, l, srv)
	_ = obtain(t, a)
	_, err := lockWithin(3*shortLease, b) // the longest hold, and what is then left of its lease
	return err != nil
}

// sleepsThroughARelease has the lock deleted without a message, once b has gone to
// sleep: to b it is as if the message had been lost.
func sleepsThroughARelease(t *testing.T, l Library) bool {
	srv := redistest.Start(t, redistest.WithoutPassword())
	a, b := connectLong(t, l, srv), connectLong(t, l, srv)
	_ = obtain(t, a)
	got := make(chan error, 1)
	go func() {
		_, err := lockWithin(5*time.Second, b)
		got <- err
	}()
	// Once by a, which has to send the script then, and by b before and after it subscribed.
	for end := time.Now().Add(patience); srv.CommandCalls("evalsha") < 3; {
		if time.Now().After(end) {
			t.Fatal("nobody waits")
		}
	}
	if err := srv.Admin().Del(t.Context(), lockName).Err(); err != nil {
		t.Fatal(err)
	}
	return <-got != nil
}

const (
	lockName   = "the-lock"
	holderRole = "holder"
)

// hold is a process that takes the lock and keeps it.
func hold(args []string) {
	l := Pick(args[0])[0]
	c, err := l.Open(args[1], shortLease)
	if err == nil {
		_, err = c.Lock(context.Background(), lockName)
	}
	fmt.Println("held", err)
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
}

func TestMain(m *testing.M) {
	os.Exit(redistest.Main(m, map[string]func([]string){holderRole: hold}))
}

// connect opens a contender whose locks soon end, and connectLong one whose do not.
func connect(t *testing.T, l Library, srv *redistest.Server) Contender {
	t.Helper()
	return connectFor(t, l, srv, shortLease)
}

func connectLong(t *testing.T, l Library, srv *redistest.Server) Contender {
	t.Helper()
	return connectFor(t, l, srv, holdfast.DefaultLease)
}

func connectFor(t *testing.T, l Library, srv *redistest.Server, lease time.Duration) Contender {
	t.Helper()
	c, err := l.Open(srv.Addr(), lease)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// obtain takes the lock, which is free.
func obtain(t *testing.T, c Contender) func(context.Context) error {
	t.Helper()
	unlock, err := lockWithin(patience, c)
	if err != nil {
		t.Fatal(err)
	}
	return unlock
}

// lockWithin waits for the lock for d. The lock outlives the wait.
func lockWithin(d time.Duration, c Contender) (func(context.Context) error, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	timer := time.AfterFunc(d, func() { cancel(errTooLong) })
	unlock, err := c.Lock(ctx, lockName)
	timer.Stop()
	return unlock, err
}

var errTooLong = errors.New("nobody gave way")
