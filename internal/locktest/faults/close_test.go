package faults

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/locktest/several"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// managerOf returns a manager on a client that the test closes, and that client.
func managerOf(t *testing.T, srv *redistest.Server, opts ...holdfast.Option) (*holdfast.Manager, *redis.Client) {
	t.Helper()
	client := srv.Client(t)
	m := locktest.ManagerAsIs(t, client, opts...)
	return m, client
}

// A client that was closed before its manager ends what is taken together as well.
func TestClosed_SeveralLocks(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m, client := managerOf(t, srv, holdfast.WithLease(time.Hour))
	several, err := holdfast.NewMulti(m.Mutex("a"), m.RWMutex("b").RLocker(), m.FairMutex("c"))
	redistest.Must(t, err)
	lease := locktest.MustLock(t, several)
	write, read := bothSides(t, m.RWMutex("rw"))
	waiter := m.RWMutex("rw").LockAsync(t.Context()) // behind a lease that is valid
	client.Close()
	locktest.EndsClosed(t, "Unlock", func() error { return lease.Unlock(context.Background()) })
	locktest.EndsClosed(t, "one that waited before", func() error { return (<-waiter).Err })
	locktest.EndsClosed(t, "Unlock again", func() error { return lease.Unlock(context.Background()) })
	locktest.EndsClosed(t, "Lock", func() error { _, err := several.Lock(context.Background()); return err })
	locktest.EndsClosed(t, "TryLock", func() error { _, err := several.TryLock(context.Background()); return err })
	locktest.EndsClosed(t, "RLock", func() error { _, err := m.RWMutex("rw").RLock(context.Background()); return err })
	locktest.EndsClosed(t, "Unlock of the write side", func() error { return write.Unlock(context.Background()) })
	locktest.EndsClosed(t, "Unlock of the read side", func() error { return read.Unlock(context.Background()) })
}

// A Redlock stays as long as a majority of its clients is open, and ends with it.
func TestClosed_Redlock(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := several.Servers(t, 3)
		var clients []*redis.Client
		for _, srv := range all {
			clients = append(clients, srv.Client(t))
		}
		l := several.CandidateOn(t, clients, several.Mutexes, holdfast.WithLease(time.Hour))
		clients[0].Close()
		locktest.MustUnlock(t, locktest.MustLock(t, l))
		lease := locktest.MustLock(t, l)
		waiter := redistest.Begin(func() error { _, err := l.Lock(context.Background()); return err })
		redistest.Eventually(t, locktest.Patience, "it waits", func() bool { return l.Managers[1].Stats().Waiting+l.Managers[2].Stats().Waiting > 0 })
		clients[1].Close()
		locktest.EndsClosed(t, "one that waited before", func() error { return <-waiter })
		locktest.EndsClosed(t, "Unlock", func() error { return lease.Unlock(context.Background()) })
		locktest.EndsClosed(t, "Lock", func() error { _, err := l.Lock(context.Background()); return err })
		locktest.EndsClosed(t, "TryLock", func() error { _, err := l.TryLock(context.Background()); return err })
	})
}

// All connections die right after the first lock, while the manager is still opening the others that it keeps. Close
// does not wait for a read timeout on one of them: go-redis would give none of them up before the test has ended.
func TestClose_AfterTheFirstLock(t *testing.T) {
	t.Parallel()
	for _, locked := range []bool{false, true} {
		locktest.AtLast(t, func() error { // a machine may stand still for longer than Close waits
			p := redistest.Start(t).Proxy(t)
			m, err := holdfast.New(p.ClientWith(t, func(o *redis.Options) { o.ReadTimeout = time.Hour }))
			if err != nil {
				return err
			}
			opening := p.HoldFirstReply(redistest.Command("ping"))
			lease := locktest.MustLock(t, m.Mutex("a"))
			opening.Wait(t)
			if !locked {
				locktest.MustUnlock(t, lease)
			}
			p.Forget()
			return m.Close(context.Background())
		})
	}
}

// A caller leaves while its request is on its way, over a connection that dies with the answer: what the request may have been granted is
// given back before Close says that all is.
func TestClose_GivesBackWhatADeadConnectionHasTaken(t *testing.T) {
	t.Parallel()
	locktest.AtLast(t, func() error {
		srv := redistest.Start(t)
		p := srv.Proxy(t)
		m, err := holdfast.New(p.Client(t))
		if err != nil {
			return err
		}
		locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex("a")))
		answer := p.HoldFirstReply(locktest.ScriptOn("b", "lock_acquire"))
		ctx, leave := context.WithCancel(context.Background())
		left := make(chan struct{})
		go func() {
			_, _ = m.Mutex("b").Lock(ctx)
			close(left)
		}()
		answer.Wait(t)
		leave()
		<-left
		p.Forget()
		if err := m.Close(context.Background()); err != nil {
			return err
		}
		redistest.Want(t, srv.Client(t).Exists(context.Background(), "b").Val(), 0, "Close says that all was given back, and Redis has the lock")
		return nil
	})
}

// A release that Redis does not answer for long is repeated after pauses, which have grown longer than an Unlock or Close
// waits. So what waits for its answer ends the pause. That is about a second: a machine must not stand still for as long.
func TestRelease_PausesEndForUnlockAndClose(t *testing.T) {
	redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
		for _, way := range []string{"Unlock", "Close"} {
			m, p := locktest.ManagerVia(t, srv, holdfast.WithLease(2*time.Second))
			var leases []*holdfast.Lease
			for i := range 20 {
				leases = append(leases, locktest.MustLock(t, m.Mutex(fmt.Sprint(way, i))))
			}
			p.AnswerError(script, math.MaxInt, "upstream failure")
			var calls sync.WaitGroup
			for _, l := range leases {
				calls.Go(func() { locktest.WantErr(t, l.Unlock(t.Context()), holdfast.ErrUnavailable, holdfast.ErrLeaseLost) })
			}
			calls.Wait()
			time.Sleep(time.Second) // of the outage, which is shorter than the lease
			p.Heal()
			if way == "Close" {
				redistest.Check(t, m.Close(context.Background()))
				continue
			}
			for _, l := range leases {
				calls.Go(func() {
					redistest.Check(t, l.Unlock(t.Context()))
				})
			}
			calls.Wait()
		}
	})
}

// Redis cannot be reached, in one way or another, while a lease ends that was valid when Unlock was called, and for some
// time after that. Whatever lock it is of, no call of Unlock says that it was lost, and it is not counted as lost.
func TestUnlock_AtTheLastMoment(t *testing.T) {
	t.Parallel()
	outages := map[string]func(*redistest.Proxy){
		"refused":  func(p *redistest.Proxy) { p.Refuse(true); p.Cut() },
		"silent":   func(p *redistest.Proxy) { p.BlackHole(true) },
		"frozen":   func(p *redistest.Proxy) { p.Freeze(true) },
		"errors":   func(p *redistest.Proxy) { p.AnswerError(script, math.MaxInt, "upstream failure") },
		"no reply": func(p *redistest.Proxy) { p.LoseReply(script, math.MaxInt) },
	}
	for kind, of := range spoiltKinds {
		for outage, begin := range outages {
			for _, before := range []time.Duration{40 * time.Millisecond, 400 * time.Millisecond} {
				for _, length := range []time.Duration{130 * time.Millisecond, 700 * time.Millisecond} {
					t.Run(fmt.Sprint(kind, "/", outage, "/", before, " before/", length), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							s := newSpoilt(t, of, holdfast.WithFixedLease(2*time.Second))
							lease := locktest.MustLock(t, s.lock)
							for _, p := range s.proxies {
								begin(p)
								time.AfterFunc(time.Until(lease.Deadline())-before+length, p.Heal)
							}
							time.Sleep(time.Until(lease.Deadline()) - before)
							if err := lease.Unlock(t.Context()); err != nil && !errors.Is(err, holdfast.ErrUnavailable) {
								t.Error(err)
							}
							time.Sleep(5 * time.Second)
							if err := lease.Unlock(context.Background()); errors.Is(err, holdfast.ErrLeaseLost) {
								t.Errorf("again: %v", err)
							}
							for _, m := range s.managers {
								redistest.Want(t, m.Stats().Lost, 0, "%d are counted as lost")
							}
						})
					})
				}
			}
		}
	}
}
