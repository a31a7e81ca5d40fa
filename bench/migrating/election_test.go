package migrating

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// ttl is the time after which a leader that died is none. etcd takes no session of less than two seconds.
const ttl = 3

// candidate is a process that takes part in an election, with a client of its own.
type candidate interface {
	campaign(ctx context.Context) error
	resign(ctx context.Context) error
	die()
}

// elections are those that are compared, each on a server of its own on this machine.
var elections = map[string]func(b *testing.B) func(name string) candidate{
	"holdfast": func(b *testing.B) func(string) candidate {
		srv := redistest.Start(b)
		return func(name string) candidate {
			proxy := srv.Proxy(b)
			client := srv.Client(b)
			if name == mortal {
				client = proxy.Client(b)
			}
			m, err := holdfast.New(client, holdfast.WithLease(ttl*time.Second))
			must(b, err)
			b.Cleanup(func() { _ = m.Close(context.Background()) })
			return &holdfastCandidate{m.Election("seat"), nil, proxy}
		}
	},
	"etcd": func(b *testing.B) func(string) candidate {
		server := startEtcd(b)
		return func(string) candidate {
			client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Clients[0].Addr().String()}})
			must(b, err)
			session, err := concurrency.NewSession(client, concurrency.WithTTL(ttl))
			must(b, err)
			b.Cleanup(func() { _, _ = session.Close(), client.Close() })
			return &etcdCandidate{concurrency.NewElection(session, "/seat"), session}
		}
	},
}

// mortal is the name of a candidate that is to die.
const mortal = "mortal"

type holdfastCandidate struct {
	election *holdfast.Election
	term     *holdfast.Term
	proxy    *redistest.Proxy
}

func (c *holdfastCandidate) campaign(ctx context.Context) (err error) {
	c.term, err = c.election.Campaign(ctx, "value")
	return err
}
func (c *holdfastCandidate) resign(ctx context.Context) error { return c.term.Resign(ctx) }
func (c *holdfastCandidate) die()                             { c.proxy.BlackHole(true) }

type etcdCandidate struct {
	*concurrency.Election
	session *concurrency.Session
}

func (c *etcdCandidate) campaign(ctx context.Context) error { return c.Campaign(ctx, "value") }
func (c *etcdCandidate) resign(ctx context.Context) error   { return c.Resign(ctx) }
func (c *etcdCandidate) die()                               { c.session.Orphan() }

// The time from the call of Resign until the next candidate leads, which waits: election_handover.
func BenchmarkElection_Handover(b *testing.B) {
	for name, open := range elections {
		b.Run("impl="+name, func(b *testing.B) {
			join := open(b)
			leads, waits := join("a"), join("b")
			must(b, leads.campaign(b.Context()))
			for b.Loop() {
				b.StopTimer()
				led := make(chan error, 1)
				go func() { led <- waits.campaign(b.Context()) }()
				time.Sleep(250 * time.Millisecond) // it waits and listens; etcd looks after a new watch every 100 ms
				b.StartTimer()
				resigned := make(chan error, 1)
				go func() { resigned <- leads.resign(b.Context()) }()
				must(b, <-led)
				b.StopTimer()
				must(b, <-resigned)
				leads, waits = waits, leads
				b.StartTimer()
			}
			must(b, leads.resign(b.Context()))
		})
	}
}

// The time until the next candidate leads after the leader has died, at a moment after its last renewal that the run decides: election_crash.
func BenchmarkElection_Crash(b *testing.B) {
	for name, open := range elections {
		b.Run(fmt.Sprintf("impl=%s/ttl=%ds", name, ttl), func(b *testing.B) {
			join := open(b)
			for b.Loop() {
				b.StopTimer()
				leads, waits := join(mortal), join("heir")
				must(b, leads.campaign(b.Context()))
				led := make(chan error, 1)
				go func() { led <- waits.campaign(b.Context()) }()
				time.Sleep(ttl * time.Second)
				b.StartTimer()
				leads.die()
				must(b, <-led)
				b.StopTimer()
				must(b, waits.resign(b.Context()))
				b.StartTimer()
			}
		})
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil && !errors.Is(err, context.Canceled) {
		tb.Fatal(err)
	}
}
