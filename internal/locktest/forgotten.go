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
// them, and new ones work. A machine can stand still for longer than a TryLock waits, so each is
// played several times, with all connections forgotten each time, and has to end well once.

// idle are the connections that a client has, for pipelines and for single commands.
type idle struct{ pipelines, commands int }

// pools are what a process may have: a few, full ones, and what it has beside them for other commands.
var pools = []idle{{1, 0}, {10, 0}, {20, 0}, {10, 8}}

// forgetting returns a manager behind a proxy, and a function that makes all connections of its client
// dead, of which there are so many then.
func (e *Env) forgetting(n idle, opts ...holdfast.Option) (*holdfast.Manager, func()) {
	e.Helper()
	p := e.Server().Proxy(e)
	client := e.client(p.Options())
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

// atLast plays f until it reports no error, a few times at most.
func (e *Env) atLast(f func() error) {
	e.Helper()
	var err error
	for range 6 {
		if err = f(); err == nil {
			return
		}
		e.Logf("again: %v", err)
	}
	e.Fatal(err)
}

// soon bounds what a call may take that needs new connections.
func soon() (context.Context, context.CancelFunc) { return context.WithTimeout(bg, time.Second) }

var forgottenScenarios = map[string]func(*Env){
	// With however many dead connections in the pools, each call finds one that works.
	"ForgottenTryLock": func(e *Env) {
		for _, n := range pools {
			e.atLast(func() error {
				m, forget := e.forgetting(n)
				forget()
				got, err := e.Lock(m).TryLock(bg)
				if err == nil {
					e.MustUnlock(got)
				}
				return err
			})
		}
	},
	"ForgottenLock": func(e *Env) {
		for _, n := range pools {
			e.atLast(func() error {
				m, forget := e.forgetting(n)
				forget()
				ctx, cancel := soon()
				defer cancel()
				got, err := e.Lock(m).Lock(ctx)
				if err == nil {
					e.MustUnlock(got)
				}
				return err
			})
		}
	},
	"ForgottenUnlock": func(e *Env) {
		for _, n := range pools {
			e.atLast(func() error {
				m, forget := e.forgetting(n)
				got := e.MustLock(e.Lock(m))
				forget()
				return got.Unlock(bg)
			})
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
	// A job that runs once per period, in which its connections are forgotten.
	"ForgottenEachPeriod": func(e *Env) {
		e.atLast(func() error {
			p := e.Server().Proxy(e)
			client := e.client(p.Options())
			m := e.ManagerOn(client)
			e.MustUnlock(e.MustLock(e.Lock(m)))
			e.fill(p, client, idle{10, 0})
			for range 5 {
				p.Forget()
				got, err := e.Lock(m).TryLock(bg)
				if err != nil {
					return err
				}
				if err := got.Unlock(bg); err != nil {
					return err
				}
			}
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
		e.atLast(func() error {
			m, forget := e.forgetting(idle{1, 0}, byMessage...)
			held := e.MustLock(e.Lock(holder))
			waiter := e.standby(e.Lock(m))
			forget()
			began := time.Now()
			e.MustUnlock(e.MustLock(e.kind.Lock(m, e.Key+":other")))
			e.Eventually("another connection is listened to", func() bool { return m.Stats().Reconnects > 0 })
			e.MustUnlock(held)
			e.MustUnlock(<-waiter)
			if d := time.Since(began); d > 1500*time.Millisecond {
				return fmt.Errorf("served after %v", d)
			}
			return nil
		})
	},
	// Questions, and what an operator does.
	"ForgottenQuestions": func(e *Env) {
		e.atLast(func() error {
			m, forget := e.forgetting(idle{10, 0})
			got := e.MustLock(e.Lock(m))
			defer func() { _ = got.Unlock(bg) }()
			forget()
			if err := got.Extend(bg, lease); err != nil {
				return err
			}
			m, forget = e.forgetting(idle{10, 0})
			forget()
			if info, err := m.Inspect(bg, e.Key); err != nil || !info.Held {
				return fmt.Errorf("%+v, %w", info, err)
			}
			forget()
			if freed, err := m.ForceUnlock(bg, e.Key); err != nil || !freed {
				return fmt.Errorf("%v, %w", freed, err)
			}
			return nil
		})
	},
}
