package holdfast_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

const vote = "vote" // the name of every member

// electorate is some independent servers.
type electorate []*redistest.Server

func servers(t testing.TB, n int, opts ...redistest.ServerOption) electorate {
	all := make(electorate, n)
	for i := range all {
		all[i] = redistest.Start(t, opts...)
	}
	return all
}

// candidate is a client: a Redlock and the manager of each member.
type candidate struct {
	*holdfast.Redlock
	managers []*holdfast.Manager
}

// side is what the members of a Redlock are.
type side func(m *holdfast.Manager) holdfast.Locker

func mutexes(m *holdfast.Manager) holdfast.Locker { return m.Mutex(vote) }

func (all electorate) candidate(t testing.TB, opts ...holdfast.Option) candidate {
	t.Helper()
	return all.candidateFor(t, mutexes, opts...)
}

func (all electorate) candidateFor(t testing.TB, of side, opts ...holdfast.Option) candidate {
	t.Helper()
	clients := make([]*redis.Client, len(all))
	for i, srv := range all {
		clients[i] = srv.Client(t)
	}
	return candidateOn(t, clients, of, opts...)
}

func candidateOn(t testing.TB, clients []*redis.Client, of side, opts ...holdfast.Option) candidate {
	t.Helper()
	var c candidate
	var members []holdfast.Locker
	for _, rdb := range clients {
		m, err := holdfast.New(rdb, opts...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close(context.Background()) })
		c.managers = append(c.managers, m)
		members = append(members, of(m))
	}
	l, err := holdfast.NewRedlock(members...)
	if err != nil {
		t.Fatal(err)
	}
	c.Redlock = l
	return c
}

// waitsAt returns the member that c waits at, once it does and hears messages.
func (c candidate) waitsAt(t *testing.T) (member int) {
	t.Helper()
	redistest.Eventually(t, patience, "it waits", func() bool {
		for i, m := range c.managers {
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
func (c candidate) idle(t testing.TB) {
	t.Helper()
	for _, m := range c.managers {
		redistest.Eventually(t, patience, "nothing is known", func() bool { s := m.Stats(); return s.Held+s.Waiting+s.Locks == 0 })
	}
}

// candidateVia returns a candidate for mutexes with a proxy before each member, connected to all.
func (all electorate) candidateVia(t *testing.T) (c candidate, proxies []*redistest.Proxy) {
	t.Helper()
	var clients []*redis.Client
	for _, srv := range all {
		p := srv.Proxy(t)
		proxies, clients = append(proxies, p), append(clients, p.Client(t))
	}
	c = candidateOn(t, clients, mutexes)
	all.greet(t, c)
	return c, proxies
}

// greet lets c lock and unlock once, so that all is connected. It waits for every vote to come
// and to go: Lock returns with a majority, and a vote that came after a fault has been set up
// would be another one's.
func (all electorate) greet(t *testing.T, c candidate) {
	t.Helper()
	lease := mustLock(t, c)
	all.heldBy(t, len(all))
	mustUnlock(t, lease)
	c.idle(t)
}

// held is on how many servers there is a vote.
func (all electorate) held(t testing.TB) (n int) {
	for _, srv := range all {
		n += int(srv.Admin().Exists(t.Context(), vote).Val())
	}
	return n
}

func (all electorate) heldBy(t *testing.T, n int) {
	t.Helper()
	redistest.Eventually(t, patience, fmt.Sprintf("%d votes", n), func() bool { return all.held(t) == n })
}

// joined waits until every member is part of lease: then it is prolonged with it.
func (all electorate) joined(t *testing.T, lease *holdfast.Lease) {
	t.Helper()
	redistest.Eventually(t, patience, "all have joined", func() bool {
		if !slices.ContainsFunc(all, func(srv *redistest.Server) bool {
			return srv.Admin().PTTL(t.Context(), vote).Val() < time.Hour/2
		}) {
			return true
		}
		mustExtend(t, lease, time.Hour)
		return false
	})
}
