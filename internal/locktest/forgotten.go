package locktest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Scenarios with connections that a NAT or a load balancer has forgotten: they swallow what is written to
// them, and new ones work. In fake time each call finds one that works within what it usually waits for. On a real server
// the machine can stand still for longer than that, so it is made until it is answered. There no dead connection ends by
// itself meanwhile.

// idle are the connections that a client has, for pipelines and for single commands.
type idle struct{ pipelines, commands int }

// pools are what a process may have: a few, full ones, and what it has beside them for other commands.
var pools = []idle{{1, 0}, {10, 0}, {20, 0}, {10, 8}}

// forgetting returns a manager behind a proxy, and a function that makes all connections of its client
// dead, of which there are so many then.
func (e *Env) forgetting(n idle, opts ...holdfast.Option) (*holdfast.Manager, func()) {
	e.Helper()
	p, client := e.patient()
	m := e.ManagerOn(client, opts...)
	if _, err := e.Inspect(m); err != nil { // it is connected
		e.Fatal(err)
	}
	return m, func() {
		e.Helper()
		e.fill(p, client, n)
		p.Forget()
	}
}

// patient returns a proxy and a client behind it, which on a real server never gives up on an answer.
func (e *Env) patient() (*redistest.Proxy, redis.UniversalClient) {
	e.Helper()
	p := e.Server().Proxy(e)
	opt := p.Options()
	if !e.kind.Virtual {
		opt.ReadTimeout = time.Hour
	}
	return p, e.client(opt)
}

// fill makes client open connections, as many as its pools allow.
func (e *Env) fill(p *redistest.Proxy, client redis.UniversalClient, n idle) {
	e.Helper()
	server, _ := client.(*redis.Client)
	if c, ok := client.(*redis.ClusterClient); ok {
		server, _ = c.MasterForKey(bg, e.Key)
	}
	p.Freeze(true)
	var wg sync.WaitGroup
	for range n.pipelines {
		wg.Go(func() {
			_, _ = server.Pipelined(bg, func(pipe redis.Pipeliner) error { return pipe.Exists(bg, e.Key).Err() })
		})
	}
	for range n.commands {
		wg.Go(func() { server.Exists(bg, e.Key) })
	}
	most := redis.DefaultPipelinePoolSize + server.Options().PoolSize
	e.Eventually("connections are in use", func() bool {
		s := server.PoolStats()
		return int(s.TotalConns-s.IdleConns+s.PipelineStats.TotalConns-s.PipelineStats.IdleConns) >= min(n.pipelines+n.commands, most)
	})
	p.Freeze(false)
	wg.Wait()
}

// atLast is AtLast with a lock of its own for each try.
func (e *Env) atLast(try func() error) {
	e.Helper()
	name, n := e.Key, 0
	once := func() error {
		n++
		e.Key = fmt.Sprint(name, " ", n)
		return try()
	}
	if !e.kind.Virtual {
		AtLast(e, once)
	} else if err := once(); err != nil {
		e.Fatal(err)
	}
}

// works makes a call: once in fake time, and on a real server until it is answered.
func (e *Env) works(call func() error) {
	e.Helper()
	if !e.kind.Virtual {
		patiently := call
		call = func() error { return UntilAnswered(patiently) }
	}
	redistest.Must(e, call())
}

// taken is a lease that a call which works has got.
func (e *Env) taken(lock func(context.Context) (*holdfast.Lease, error), within time.Duration) (got *holdfast.Lease) {
	e.Helper()
	e.works(func() (err error) {
		ctx, cancel := context.WithTimeout(bg, e.bound(within))
		defer cancel()
		got, err = lock(ctx)
		return err
	})
	return got
}

var forgottenScenarios = map[string]func(*Env){
	// With however many dead connections in the pools, Lock and Unlock find one that works.
	"ForgottenLock": func(e *Env) {
		for _, n := range pools {
			m, forget := e.forgetting(n)
			forget()
			got := e.taken(e.Lock(m, holdfast.WithLease(time.Hour)).Lock, time.Second)
			forget()
			e.works(func() error { return got.Unlock(bg) })
		}
	},
	"ForgottenClose": func(e *Env) {
		e.atLast(func() error {
			m, forget := e.forgetting(idle{10, 0})
			_ = e.MustLock(e.Lock(m))
			forget()
			if err := m.Close(bg); err != nil {
				return err
			}
			e.Free()
			return nil
		})
	},
	// A lease is renewed although all connections are dead when that is due. Their number outlasts it, were they
	// tried one after the other.
	"ForgottenBeforeRenewal": func(e *Env) {
		e.atLast(func() error {
			m, forget := e.forgetting(idle{10, 8})
			got := e.MustLock(e.Lock(m))
			forget()
			before := got.Deadline()
			e.Eventually("it is renewed, or lost", func() bool { return got.Err() != nil || got.Deadline().After(before) })
			if err := got.Err(); err != nil {
				return err
			}
			return got.Unlock(bg)
		})
	},
	// The connection for messages is dead as well. That is found out when the others are, and not when it is next to
	// show that it lives, 2 to 5 s later.
	"ForgottenWhileWaiting": func(e *Env) {
		holder := e.Manager(byMessage...)
		m, forget := e.forgetting(idle{1, 0}, byMessage...)
		held := e.MustLock(e.Lock(holder))
		waiter := e.standby(e.Lock(m))
		forget()
		began := time.Now()
		e.MustUnlock(e.MustLock(e.kind.Lock(m, e.Key+":other")))
		e.Eventually("another connection is listened to", func() bool { return m.Stats().Reconnects > 0 })
		e.Passes(held, "the waiter", waiter)
		redistest.WantMost(e, time.Since(began), e.bound(1500*time.Millisecond), "served after %v")
	},
	// Questions, and what an operator does.
	"ForgottenQuestions": func(e *Env) {
		m, forget := e.forgetting(idle{10, 0}, holdfast.WithLease(time.Hour))
		got := e.MustLock(e.Lock(m))
		defer func() { _ = got.Unlock(bg) }()
		forget()
		e.works(func() error { return got.Extend(bg, lease) })
		m, forget = e.forgetting(idle{10, 0})
		forget()
		e.works(func() error {
			info, err := m.Inspect(bg, e.Key)
			if err == nil && !info.Held {
				e.Errorf("%+v", info)
			}
			return err
		})
		forget()
		late := false // a call whose answer was late may be the one that freed the lock
		e.works(func() error {
			freed, err := m.ForceUnlock(bg, e.Key)
			if late = late || err != nil; !freed && !late {
				e.Error("nothing was freed")
			}
			return err
		})
	},
}
