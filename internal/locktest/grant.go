package locktest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Deafen keeps everything from m's pub/sub connection, beginning now, until the gate is
// released: nothing is lost, it is late. m goes through p and has subscribed before.
func (e *Env) Deafen(m *holdfast.Manager, p *redistest.Proxy) *redistest.Gate {
	e.Helper()
	other := e.Key + ":elsewhere"
	e.HeldByRedisson(other)
	gate := p.HoldReply(redistest.All(redistest.Command("subscribe"), redistest.Containing(other)))
	ctx, cancel := context.WithCancel(bg)
	done := make(chan struct{})
	go func() { defer close(done); _, _ = e.kind.Lock(m, other).Lock(ctx) }()
	e.Cleanup(func() { cancel(); <-done })
	gate.Wait(e) // the confirmation of another channel is what holds up the rest
	return gate
}

// queue is the key of the list of those who wait for the lock.
func (e *Env) queue() string { return e.queueKeys()[0] }

// bystander waits for the lock at m. It returns when Redis knows, and that m will hear.
func (e *Env) bystander(m *holdfast.Manager, opts ...holdfast.LockOption) <-chan *holdfast.Lease {
	e.Helper()
	return e.standby(e.Lock(m, opts...))
}

// standby is bystander for any side of the lock. No other caller waits in its process.
func (e *Env) standby(l holdfast.Locker) <-chan *holdfast.Lease {
	e.Helper()
	before := e.inboxes()
	got := e.Locking(l)
	e.Listening(before + 1)
	e.Eventually("it has said that it listens", func() bool { return e.attentive(e.Key) })
	e.quiet()
	return got
}

// quiet waits until Redis has not been asked anything for a while: what follows a
// subscription are two requests, and a grant that the second one finds is not the
// message's.
func (e *Env) quiet() {
	e.Helper()
	calls, since := int64(0), time.Now()
	e.Eventually("nothing is asked", func() bool {
		if n := e.srv.CommandCalls("eval", "evalsha"); n != calls {
			calls, since = n, time.Now()
		}
		return time.Since(since) > 50*time.Millisecond
	})
}

// caughtUp waits until mon has seen what Redis has done so far.
func (e *Env) caughtUp(mon *redistest.Monitor) {
	e.Helper()
	end := fmt.Sprintf("end of %s at %d", e.Key, time.Now().UnixNano())
	e.srv.Admin().Echo(bg, end)
	mon.Wait(e, end, patience)
}

// grantInARow finds which grant in a row a message is, see message_of in scripts/lib/grant.lua.
var grantInARow = regexp.MustCompile(`"publish" "holdfast_inbox:.* "g \d+ \d+ \d+ \d+ (\d+) `)

// grantScenarios are about the release that makes the next waiter the owner.
var grantScenarios = map[string]func(*Env){
	// A grant that comes from a lease of a fraction of a millisecond is trusted as any other.
	"LeaseOfAFraction": func(e *Env) {
		if e.kind.Confirms {
			e.Skip("no grant is trusted")
		}
		const other = "other:"
		third := e.MustLock(e.kind.Lock(e.Manager(), other+e.Key))
		a, b := e.Manager(byMessage...), e.Manager(byMessage...)
		var waiting []<-chan *holdfast.Lease // so that both hear all the time
		for i, m := range []*holdfast.Manager{a, b} {
			waiting = append(waiting, e.Locking(e.kind.Lock(m, other+e.Key)))
			e.Listening(int64(i + 1))
			e.quiet()
		}
		fraction := holdfast.WithLease(1500*time.Millisecond + time.Microsecond)
		locks := []holdfast.Locker{e.Lock(a, fraction), e.Lock(b, fraction)}
		held := e.MustLock(locks[0])
		const turns = 6
		for i := range turns {
			got := e.InQueue(1, locks[(i+1)%2])
			e.quiet()
			e.MustUnlock(held)
			held = e.Soon("the next", got)
		}
		e.MustUnlock(held)
		redistest.Want(e, a.Stats().Granted+b.Stats().Granted, turns, "%d of %d grants were trusted")
		e.MustUnlock(third)
		for _, got := range waiting {
			e.MustUnlock(e.Soon("who waited for the other lock", got))
		}
	},

	// Two commands for each acquisition at most, whatever the number of processes: the
	// grant reaches the waiter by itself.
	"TwoCommandsPerHandOver": func(e *Env) {
		most := 2.3 // a machine that is slow makes some grants late, which are asked about
		if e.kind.Confirms {
			most = 3.3
		}
		for i, opts := range [][]holdfast.LockOption{nil, {holdfast.WithFencing()}, nil} { // a grant brings a token with it
			managers := 2 + i
			var wg sync.WaitGroup
			var s Section
			const rounds = 200
			var proxies []*redistest.Proxy
			var locks []holdfast.Locker
			var ms []*holdfast.Manager
			for range managers {
				m, p := e.Via()
				ms = append(ms, m)
				proxies, locks = append(proxies, p), append(locks, e.Lock(m, opts...))
				e.MustUnlock(e.MustLock(e.kind.Lock(m, e.Key+":warm"))) // connections, scripts
			}
			held := e.MustLock(e.Lock(e.Manager()))
			for _, l := range locks {
				wg.Go(func() {
					for range rounds {
						lease := e.MustLock(l)
						s.Enter(e, 0)
						e.MustUnlock(lease)
					}
				})
			}
			e.Listening(int64(managers)) // all stand in the queue
			for _, p := range proxies {
				p.Record()
			}
			e.MustUnlock(held)
			wg.Wait()
			var n, renewals, asked, all, trusted int64
			for i, p := range proxies {
				n += p.Count(redistest.All(script, redistest.Containing(e.Key)))
				asked += p.Count(acquireOf(e.Key))
				all += p.Count(isCommand)
				renewals += int64(ms[i].Stats().Renewals) // of holds that took longer than 25 ms
				trusted += int64(ms[i].Stats().Granted)
			}
			calls := float64(n-renewals) / float64(managers*rounds)
			e.Logf("%d managers: %.3f requests per acquisition (%d acquires, %d renewals, %d in all)", managers, calls, asked, renewals, all)
			if !e.kind.Confirms {
				e.Attr("L1:requests-per-acquisition", strconv.FormatFloat(calls, 'f', 3, 64))
			}
			if calls > most {
				e.Errorf("%d managers: %.2f requests per acquisition", managers, calls)
			}
			if (trusted > 0) == e.kind.Confirms {
				e.Errorf("%d managers: %d grants were not asked about", managers, trusted)
			}
		}
	},

	// A grant says whether other processes wait behind it: who has one keeps to its slice
	// without having asked.
	"GrantTellsOfOthers": func(e *Env) {
		opts := append(slices.Clone(byMessage), holdfast.WithHandoffSlice(1))
		a, b := e.Manager(opts...), e.Manager(opts...)
		held := e.MustLock(e.Lock(e.Manager(opts...)))
		first, other := e.bystander(a), e.bystander(b)
		second := e.Parking(a, 2, e.Lock(a))
		e.MustUnlock(held)
		got := <-first
		time.Sleep(time.Millisecond) // its slice is over
		e.MustUnlock(got)
		select {
		case l := <-other:
			e.Passes(l, "the waiter", second)
		case l := <-second:
			e.Error("passed on inside the process, past another that waited")
			e.Passes(l, "the waiter", other)
		}
	},

	// S9: over passing inside a process, grants by the server, confirmations and asking.
	"TokensGrowHoweverItIsGranted": func(e *Env) {
		var last uint64 // guarded by the lock
		var wg sync.WaitGroup
		// Tokens that began with a time in microseconds have sixteen digits, in messages as well.
		e.Server().Admin().Set(bg, "redisson_lock_token:{"+e.Key+"}", int64(1763760000000000), 0)
		for i := range 3 {
			m, p := e.Via()
			if i == 0 {
				p.Delay(0, 2*time.Millisecond)
			}
			for range 2 {
				l := e.Lock(m, holdfast.WithFencing())
				wg.Go(func() {
					for n := range 60 {
						if n%20 == 19 {
							e.srv.Admin().Do(bg, "CLIENT", "KILL", "TYPE", "pubsub")
						}
						lease := e.MustLock(l)
						if t := lease.Token(); t <= last {
							e.Errorf("token %d after %d", t, last)
						} else {
							last = t
						}
						e.MustUnlock(lease)
					}
				})
			}
		}
		wg.Wait()
		e.srv.RequireTTLs(e, Tokens)
	},

	// Redisson's plain waiters cannot stand in the queue. One that listens gets in after
	// 16 grants of Holdfast in a row, or before; where none listens, nothing is left open.
	"PlainRedissonWaiterGetsItsTurn": func(e *Env) {
		var wg sync.WaitGroup
		defer wg.Wait()
		ctx, stop := context.WithCancel(bg)
		defer stop()
		mon := e.Server().Monitor(e)
		for range 3 {
			handle := e.Lock(e.Manager()) // kept: the lock has been told of Redisson's channel before
			wg.Go(func() {
				for {
					l, err := handle.Lock(ctx)
					if err != nil {
						return
					}
					time.Sleep(time.Millisecond) // so that the others stand in the queue, and it is away for long enough to step aside
					e.MustUnlock(l)
				}
			})
		}
		grants := func() int { return countLines(mon, `lua] "publish" "holdfast_inbox:`, `"g `) }
		e.Eventually("100 grants", func() bool { return grants() >= 100 })
		redistest.Want(e, countLines(mon, `lua] "publish" "holdfast_inbox:`, `"o `), 0, "%d open releases while nobody of Redisson's listens")
		waiter := e.plainWaiter()
		quiet := grants()
		for turn := range 5 {
			before := grants()
			e.Eventually("ours have it again", func() bool { return len(e.Holders()) == 1 })
			for !waiter.take() {
				if n := grants() - before; n > 1000 { // more than sixty races were lost
					e.Fatalf("turn %d: not in after %d grants of ours", turn, n)
				}
				waiter.listen()
				time.Sleep(300*time.Microsecond + rand.N(700*time.Microsecond)) // a JVM takes longer than we do
			}
			e.Logf("turn %d after %d grants", turn, grants()-before)
			waiter.unlock()
		}
		e.caughtUp(mon)
		// Each open release is a race, which gives Redisson's a start of 2 ms. A turn may also
		// come by a release when, on a slow machine, no waiter of Holdfast stands in the queue. There the
		// count begins anew now and then, with a grant that is found by asking.
		given, open := grants()-quiet, countLines(mon, `lua] "publish" "holdfast_inbox:`, `"o `)
		told := countLines(mon, `lua] "publish" "`+e.Channel(e.Key)+`"`)
		if open == 0 || told < 5 || given > 2*18*(told+1) {
			e.Errorf("%d grants of ours and %d releases that Redisson heard of, %d of them open", given, told, open)
		}
		for _, line := range mon.Lines() {
			if m := grantInARow.FindStringSubmatch(line); m != nil {
				if n, err := strconv.Atoi(m[1]); err != nil || n < 1 || n > 16 {
					e.Errorf("grant number %s in a row", m[1])
				}
			}
		}
	},
}
