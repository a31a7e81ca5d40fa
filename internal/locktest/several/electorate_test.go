package several

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func fairSide(m *holdfast.Manager) holdfast.Locker { return m.FairMutex(Vote) }

func writeSide(m *holdfast.Manager) holdfast.Locker { return m.RWMutex(Vote) }

func readSide(m *holdfast.Manager) holdfast.Locker { return m.RWMutex(Vote).RLocker() }

// sides are the members that a Redlock can have.
var sides = map[string]Side{"mutex": Mutexes, "fair": fairSide, "write": writeSide, "read": readSide}

// rivalOf returns a side that a side excludes.
func rivalOf(name string) Side {
	if name == "read" {
		return writeSide
	}
	return sides[name]
}

// ofEveryKind runs a test with the members of each kind, and a side that they exclude.
func ofEveryKind(t *testing.T, test func(t *testing.T, of, rival Side)) {
	for name, of := range sides {
		t.Run(name, func(t *testing.T) {
			redistest.InWorlds(t, func(t *testing.T) { test(t, of, rivalOf(name)) })
		})
	}
}

// waitsAt returns the member that c waits at, once it does and hears messages.
func (c Candidate) waitsAt(t *testing.T) (member int) {
	t.Helper()
	redistest.Eventually(t, locktest.Patience, "it waits", func() bool {
		for i, m := range c.Managers {
			if s := m.Stats(); s.Waiting == 1 && s.Subscriptions > 0 {
				member = i
				return true
			}
		}
		return false
	})
	return member
}

// idle waits until c has nothing in Redis.
func (c Candidate) idle(t testing.TB) {
	t.Helper()
	for _, m := range c.Managers {
		redistest.Eventually(t, locktest.Patience, "nothing is known", func() bool { s := m.Stats(); return s.Held+s.Waiting+s.Locks == 0 })
	}
}

// candidateVia returns a candidate with a proxy before each member, connected to all.
func (all Electorate) candidateVia(t *testing.T, of Side, opts ...holdfast.Option) (c Candidate, proxies []*redistest.Proxy) {
	t.Helper()
	var clients []*redis.Client
	for _, srv := range all {
		p := srv.Proxy(t)
		p.Record()
		proxies, clients = append(proxies, p), append(clients, p.Client(t))
	}
	c = CandidateOn(t, clients, of, opts...)
	all.greet(t, c)
	return c, proxies
}

// greet lets c lock and unlock once, so that all is connected. It waits for every vote to come
// and to go: Lock returns with a majority, and a vote that came after a fault has been set up
// would be another one's.
func (all Electorate) greet(t *testing.T, c Candidate) {
	t.Helper()
	lease := locktest.MustLock(t, c)
	all.heldBy(t, len(all))
	locktest.MustUnlock(t, lease)
	c.idle(t)
}

// held is on how many servers there is a vote.
func (all Electorate) held(t testing.TB) (n int) {
	for _, srv := range all {
		n += int(srv.Admin().Exists(t.Context(), Vote).Val())
	}
	return n
}

func (all Electorate) heldBy(t *testing.T, n int) {
	t.Helper()
	redistest.Eventually(t, locktest.Patience, fmt.Sprintf("%d votes", n), func() bool { return all.held(t) == n })
}

// clean waits until no server has a key of the lock.
func (all Electorate) clean(t *testing.T) {
	t.Helper()
	for _, srv := range all {
		var left []string
		redistest.Eventually(t, locktest.Patience, "no key but tombstones", func() bool {
			left = left[:0]
			for _, k := range srv.Keys() {
				if !strings.HasPrefix(k, locktest.Tombstones) {
					left = append(left, k)
				}
			}
			return len(left) == 0
		})
	}
}
