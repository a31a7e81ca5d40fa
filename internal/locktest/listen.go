package locktest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// listenScenarios are about messages that are noise, late or never come.
var listenScenarios = map[string]func(*Env){
	// AC-55: noise on the channel grants nothing and costs little.
	"JunkMessagesAreIgnored": func(e *Env) {
		release := e.HeldByRedisson(e.Key)
		m, p := e.Via()
		got := e.Locking(e.Lock(m))
		e.Listening(1)
		e.Eventually("it listens to Redisson's releases", func() bool { return e.srv.NumSub(e.Channel(e.Key)) == 1 })
		p.Record()
		admin := e.srv.Admin()
		inbox := admin.PubSubChannels(bg, "holdfast_inbox:*").Val()[0]
		pipe := admin.Pipeline()
		for range 5000 {
			for _, junk := range []string{"", "2", "-1", "00", "\x00\xff", "hello"} {
				pipe.Publish(bg, e.Channel(e.Key), junk)
			}
			for _, junk := range []string{"", "g", "g 1", "o x", "g 1 2 3 4 5 6", "g 99 2000 1 1 1 0 0"} {
				pipe.Publish(bg, inbox, junk)
			}
		}
		pipe.Publish(bg, e.Channel(e.Key), strings.Repeat("x", 1<<20))
		heard := pipe.Publish(bg, inbox, strings.Repeat("x", 1<<20))
		if _, err := pipe.Exec(bg); err != nil || heard.Val() != 1 && e.kind.Virtual { // a connection that stands still is replaced
			e.Fatalf("%d heard it: %v", heard.Val(), err)
		}
		release() // told behind the junk
		e.MustUnlock(<-got)
		if n := p.Count(redistest.Command("evalsha")); n > 100 { // beside the polls
			e.Errorf("junk caused %d tries", n)
		}
	},

	// L3: the connection that should have brought the message was killed just then.
	"KilledPubSubIsReplaced": func(e *Env) {
		holder, m := e.Manager(byMessage...), e.Manager(byMessage...)
		for range 20 {
			held := e.MustLock(e.Lock(holder))
			got := e.Locking(e.Lock(m))
			e.Listening(1)
			e.srv.Admin().Do(bg, "CLIENT", "KILL", "TYPE", "pubsub")
			e.MustUnlock(held) // its message reaches no client
			e.MustUnlock(<-got)
		}
		if m.Stats().Reconnects == 0 {
			e.Error("no reconnection was provoked")
		}
	},

	// L3: half-open. Nothing breaks, nothing arrives: polling covers it, and the
	// connection is replaced.
	"SilentPubSubIsNoticed": func(e *Env) {
		holder := e.Manager(holdfast.WithLease(time.Hour))
		m, p := e.Via(holdfast.WithPollInterval(200 * time.Millisecond))
		held := e.MustLock(e.Lock(holder))
		// From its confirmation on nothing reaches this connection.
		p.SwallowReply(redistest.Command("subscribe"), 1)
		got := e.Parking(m, 1, e.Lock(m))
		e.Listening(1)
		e.Eventually("a second connection", func() bool { return m.Stats().Reconnects > 0 })
		e.Passes(held, "the waiter", got)
		if s := m.Stats(); s.Polls == 0 {
			e.Errorf("no polls: %+v", s)
		}
	},

	// L1: a process whose channel has no waiter any more goes on listening while a request is unanswered that stands in
	// the queue as one of a process that listens. Else a release would take it for dead, and pass it over.
	"ListensUntilItIsAnswered": func(e *Env) {
		holder, next := e.Manager(byMessage...), e.Manager(byMessage...)
		m, p := e.Via(byMessage...)
		p.Delay(400*time.Millisecond, 0) // so that the connection is not taken for dead before the release
		held, heldOther := e.MustLock(e.Lock(holder)), e.MustLock(e.kind.Lock(holder, e.Key+":other"))
		ctx, leave := context.WithCancel(bg)
		defer leave()
		left := redistest.Begin(func() error { _, err := e.kind.Lock(m, e.Key+":other").Lock(ctx); return err })
		e.Eventually("it knows that it listens", func() bool { return e.inboxes() == 1 && e.attentive(e.Key+":other") })
		gate := p.HoldReply(acquireOf(e.Key))
		first := e.Locking(e.Lock(m))
		gate.Wait(e)
		leave()
		<-left
		second := e.Locking(e.Lock(next))
		e.Eventually("both are in the queue", func() bool {
			info, err := holder.Inspect(bg, e.Key)
			return err == nil && info.Waiters == 2
		})
		time.Sleep(1200 * time.Millisecond) // a channel is left a quarter of a second after its last waiter
		e.MustUnlock(held)
		gate.Release()
		select {
		case l := <-first:
			e.Passes(l, "the waiter", second)
		case l := <-second:
			e.Error("passed over")
			e.Passes(l, "the waiter", first)
		}
		e.MustUnlock(heldOther)
		e.Clean(m, Tombstones)
	},

	// Processes that may not subscribe are never told of a grant, nor which one in a row it is.
	// Redisson's plain waiters get their turn nevertheless.
	"DeafProcessesLetRedissonIn": func(e *Env) {
		e.permit("deaf", "&* -subscribe -ssubscribe")
		opt := e.srv.Options()
		opt.Username, opt.Password = "deaf", "secret"
		ctx, stop := context.WithCancel(bg)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer stop()
		var had atomic.Int64
		for range 3 {
			m := e.ManagerOn(e.client(opt), holdfast.WithPollInterval(50*time.Millisecond))
			wg.Go(func() {
				for {
					l, err := e.Lock(m).Lock(ctx)
					if err != nil {
						return
					}
					had.Add(1)
					e.Eventually("another waits", func() bool { return ctx.Err() != nil || e.srv.Admin().LLen(bg, e.queue()).Val() > 0 })
					e.MustUnlock(l)
				}
			})
		}
		waiter := e.plainWaiter()
		for turn := range 3 {
			before := had.Load()
			e.Eventually("ours have it again", func() bool { return had.Load() > before })
			for !waiter.take() {
				if n := had.Load() - before; n > 40 {
					e.Fatalf("turn %d: not in after %d grants of ours", turn, n)
				}
				waiter.listen()
			}
			e.Logf("turn %d after %d grants", turn, had.Load()-before)
			waiter.unlock()
		}
	},
}

// unheardScenarios are about a process whose subscriptions are confirmed and whose PINGs are answered, and that gets no message.
var unheardScenarios = map[string]func(*Env){
	// The first message of the process to itself that does not come back ends the connection. The next one is sound.
	"UnheardSessionIsReplaced": func(e *Env) {
		u := e.unheard()
		took := make(chan time.Duration, 1)
		e.contend(u.m, e.Manager(), func() {
			since := time.Now()
			u.p.Hush(true)
			e.Eventually("the connection is given up", func() bool { return u.m.Stats().Unheard == 1 })
			u.p.Hush(false)
			e.Eventually("the log tells that it is restored", func() bool { return u.told("INFO holdfast: pub/sub connection restored") == 1 })
			took <- time.Since(since)
			woken := u.m.Stats().Wakeups
			e.Eventually("messages come", func() bool { return u.m.Stats().Wakeups > woken+5 })
		})
		if d := <-took; e.kind.Virtual && d > 3*time.Second {
			e.Errorf("healed after %v", d)
		}
		if n := u.told("WARN holdfast: messages do not arrive"); n != 1 || u.told("WARN") != 1 {
			e.Errorf("%q", u.With(""))
		}
	},

	// No message arrives by any connection: the process polls, tries again more and more rarely, and is healed in the end.
	"UnheardProcessPolls": func(e *Env) {
		u := e.unheard()
		u.p.Hush(true)
		e.contend(u.m, e.Manager(), func() {
			e.Eventually("it tries the fourth connection", func() bool { return u.p.Count(redistest.Command("subscribe")) >= 4 })
			if s := u.m.Stats(); s.Unheard != 1 || s.Polls == 0 || u.told("WARN") != 1 {
				e.Errorf("%+v, %q", s, u.With(""))
			}
			since := time.Now()
			e.Eventually("it goes on", func() bool { return u.p.Count(redistest.Command("subscribe")) >= 6 })
			if d := time.Since(since); e.kind.Virtual && d < 4*time.Second { // on a busy machine it is seen late that they began
				e.Errorf("two connections in %v", d)
			}
			u.p.Hush(false)
			e.Eventually("it is healed", func() bool { return u.told("INFO holdfast: pub/sub connection restored") == 1 })
		})
	},
}

// unheardLingerScenarios are about such a process and locks that linger.
var unheardLingerScenarios = map[string]func(*Env){
	// It gives up what it keeps, and what it asks for by TryLock it finds by asking.
	"UnheardLingererLetsGo": func(e *Env) {
		u := e.unheard(keeps...)
		other := e.Manager(keeps...)
		e.lingering(u.m, e.Lock(u.m))
		u.p.Hush(true)
		e.Eventually("the connection is given up", func() bool { return u.m.Stats().Unheard == 1 })
		for range 6 {
			for _, m := range []*holdfast.Manager{other, u.m} {
				var got *holdfast.Lease
				e.Eventually("nobody uses it", func() bool { l, err := e.Lock(m).TryLock(bg); got = l; return err == nil })
				e.MustUnlock(got)
			}
		}
	},
}

// unheard returns a manager behind a proxy, and its log.
func (e *Env) unheard(opts ...holdfast.Option) deniedUser {
	e.Helper()
	lines, logged := Logged()
	m, p := e.Via(append(slices.Clone(opts), logged)...)
	p.Record()
	return deniedUser{m, p, lines}
}

// contend has callers of two processes take turns while during runs.
func (e *Env) contend(a, b *holdfast.Manager, during func()) {
	e.Helper()
	stop := make(chan struct{})
	var all sync.WaitGroup
	var s Section
	for _, m := range []*holdfast.Manager{a, b} {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				l := e.MustLock(e.Lock(m))
				s.Enter(e, time.Millisecond)
				e.MustUnlock(l)
			}
		})
	}
	defer all.Wait()
	defer close(stop)
	during()
}
