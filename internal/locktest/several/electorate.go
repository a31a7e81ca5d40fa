// Package several has the tests of leases of several locks: of Multi, and of Redlock. They use the public API, on
// servers of their own. What a test of another package needs of them is exported here.
//
// Tests only.
package several

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Multi returns a Multi of locks.
func Multi(t testing.TB, locks ...holdfast.Locker) *holdfast.Multi {
	t.Helper()
	l, err := holdfast.NewMulti(locks...)
	redistest.Must(t, err)
	return l
}

// Vote is the name of every member of a Redlock.
const Vote = "vote"

// Electorate is some independent servers.
type Electorate []*redistest.Server

// Servers starts n servers.
func Servers(t testing.TB, n int, opts ...redistest.ServerOption) Electorate {
	all := make(Electorate, n)
	for i := range all {
		all[i] = redistest.Start(t, opts...)
	}
	return all
}

// endless is the lease of members whose test names none: much longer than tests wait.
const endless = 10 * time.Minute

// Candidate is a client: a Redlock and the manager of each member.
type Candidate struct {
	*holdfast.Redlock
	Managers []*holdfast.Manager
}

// Side is what the members of a Redlock are.
type Side func(m *holdfast.Manager) holdfast.Locker

// Mutexes is the usual Side.
func Mutexes(m *holdfast.Manager) holdfast.Locker { return m.Mutex(Vote) }

// Candidate returns a client of mutexes.
func (all Electorate) Candidate(t testing.TB, opts ...holdfast.Option) Candidate {
	t.Helper()
	return all.CandidateFor(t, Mutexes, opts...)
}

// CandidateFor returns a client whose members are of a side.
func (all Electorate) CandidateFor(t testing.TB, of Side, opts ...holdfast.Option) Candidate {
	t.Helper()
	clients := make([]*redis.Client, len(all))
	for i, srv := range all {
		clients[i] = srv.Client(t)
	}
	return CandidateOn(t, clients, of, opts...)
}

// CandidateOn returns a client with a connection to each member.
func CandidateOn(t testing.TB, clients []*redis.Client, of Side, opts ...holdfast.Option) Candidate {
	t.Helper()
	var c Candidate
	var members []holdfast.Locker
	for _, rdb := range clients {
		m, err := holdfast.New(rdb, append([]holdfast.Option{holdfast.WithLogger(slog.New(slog.DiscardHandler)), holdfast.WithLease(endless)}, opts...)...)
		redistest.Must(t, err)
		t.Cleanup(func() { _ = m.Close(context.Background()) })
		c.Managers = append(c.Managers, m)
		members = append(members, of(m))
	}
	l, err := holdfast.NewRedlock(members...)
	redistest.Must(t, err)
	c.Redlock = l
	return c
}

// Joined waits until every member is part of lease: then it is prolonged with it.
func (all Electorate) Joined(t testing.TB, lease *holdfast.Lease) {
	t.Helper()
	redistest.Eventually(t, locktest.Patience, "all have joined", func() bool {
		if !slices.ContainsFunc(all, func(srv *redistest.Server) bool {
			return srv.Admin().PTTL(t.Context(), Vote).Val() < time.Hour/2
		}) {
			return true
		}
		locktest.MustExtend(t, lease, time.Hour)
		return false
	})
}
