package holdfast_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// nthOf matches each nth request that m matches.
func nthOf(n int, m redistest.Match) redistest.Match {
	seen := 0
	return func(cmd []string) bool {
		if m(cmd) {
			seen++
		}
		return m(cmd) && seen%n == 0
	}
}

// Something between the clients and Redis answers some of the requests itself, with what no Redis says, or breaks
// replies off: requests for locks, for places, releases, renewals and subscriptions. Holders are alone,
// each waiter gets the lock, no release looks like a loss, and nothing is left behind.
func TestBadReplies(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*redistest.Proxy, redistest.Match){
		"empty error":     answers("-\r\n"),
		"endless error":   answers("-ERR " + strings.Repeat("x", 64<<10) + "\r\n"),
		"no UTF-8":        answers("-\xff\xfe\r\n"),
		"another type":    answers("+OK\r\n"),
		"empty list":      answers("*0\r\n"),
		"one too many":    answers("+OK\r\n-ERR proxy\r\n"),
		"two too many":    answers("$2\r\nhi\r\n+OK\r\n-ERR proxy\r\n"),
		"one before":      answers("-ERR proxy\r\n+OK\r\n"),
		"half a reply":    func(p *redistest.Proxy, m redistest.Match) { p.BreakReply(m, math.MaxInt) },
		"none and closed": func(p *redistest.Proxy, m redistest.Match) { p.LoseReply(m, math.MaxInt) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t)
			m, p := managerVia(t, srv, holdfast.WithLease(2*time.Second))
			script := func(cmd []string) bool { _, _, ok := redistest.ScriptCall(cmd); return ok }
			spoil(p, nthOf(6, script))
			spoil(p, nthOf(2, redistest.Command("subscribe")))
			direct := managerOn(t, srv)
			for _, lock := range []func(*holdfast.Manager) holdfast.Locker{
				func(m *holdfast.Manager) holdfast.Locker { return m.Mutex("a") },
				func(m *holdfast.Manager) holdfast.Locker { return m.FairMutex("b") },
				func(m *holdfast.Manager) holdfast.Locker { return m.RWMutex("c") },
			} {
				alone(t, 12, lock(m), lock(direct), lock(m), lock(m))
			}
			held := mustLock(t, m.FairMutex("d"))
			before := held.Deadline()
			redistest.Eventually(t, patience, "it is renewed, or lost", func() bool {
				return held.Err() != nil || held.Deadline().After(before.Add(time.Second))
			})
			if err := held.Err(); err != nil {
				t.Error(err)
			}
			mustUnlock(t, held)
			p.Heal()
			redistest.Eventually(t, patience, "nothing is left", func() bool { return len(lastingKeys(srv)) == 0 })
		})
	}
}

// answers returns what gives a reply, as it is on the wire, in place of Redis.
func answers(raw string) func(*redistest.Proxy, redistest.Match) {
	return func(p *redistest.Proxy, m redistest.Match) { p.Answer(m, math.MaxInt, raw) }
}

// What docs/SAFETY.md says of replies that are mixed up: a caller that gets another request's grant for its own has a lease
// until its next renewal, which finds the lock with its owner. The owner keeps it.
func TestBadReplies_OneThatFits(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		held := mustLock(t, managerOn(t, srv).Mutex("a"))
		m, p := managerVia(t, srv, holdfast.WithLease(3*time.Second))
		p.Answer(scriptOn("a", "lock_acquire"), 1, ":0\r\n")
		lease, err := m.Mutex("a").TryLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		granted := time.Now()
		<-lease.Done()
		if lost := (*holdfast.LostError)(nil); !errors.As(lease.Err(), &lost) || lost.Reason != holdfast.LostStolen {
			t.Errorf("it has ended: %v", lease.Err())
		}
		if d := time.Since(granted); d > 2*time.Second && testing.Short() { // a third of the lease, where no time passes by itself
			t.Errorf("it was valid for %v", d)
		}
		wantErr(t, unlock(lease), holdfast.ErrLeaseLost, nil)
		if !held.Valid() {
			t.Error("the owner was disturbed")
		}
		mustUnlock(t, held)
	})
}
