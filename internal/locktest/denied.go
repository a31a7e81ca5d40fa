package locktest

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// deniedScenarios are about a user that may not subscribe to some or all channels, or not publish.
var deniedScenarios = map[string]func(*Env){
	// A waiter whose process may not listen to its inbox asks as often as the poll interval says, and it
	// costs neither connections nor subscriptions.
	"DeniedWaiterKeepsThePollInterval": func(e *Env) {
		const poll, least = 400 * time.Millisecond, 320 * time.Millisecond
		var all sync.WaitGroup
		defer all.Wait()
		for user, rights := range map[string]string{
			"nothing":   "resetchannels",
			"redissons": "resetchannels &redisson_*",
			"command":   "&* -subscribe",
		} {
			e.permit(user, rights)
			d := e.denied(user, holdfast.WithPollInterval(poll))
			lock := func(m *holdfast.Manager) holdfast.Locker { return e.kind.Lock(m, e.Key+":"+user) }
			all.Go(func() {
				held := e.MustLock(lock(e.Manager(holdfast.WithLease(time.Hour))))
				got := e.Locking(lock(d.m))
				e.Eventually("the log tells", func() bool { return d.warned("holdfast_inbox:*") == 1 })
				since := time.Now()
				before := d.m.Stats()
				var now holdfast.Stats
				e.Eventually("it asks five times", func() bool { now = d.m.Stats(); return now.Polls-before.Polls >= 5 })
				took := time.Since(since)
				polls, commands := now.Polls-before.Polls, now.Commands-before.Commands
				if most := uint64(took/least) + 2; polls > most { // the timer was set before, and a part of an interval
					e.Errorf("%s: asked %d times in %v, want at most %d", user, polls, took, most)
				}
				if most := 2*polls + 5 + 3*uint64(took/time.Second); commands > most { // a fair waiter keeps its place as well
					e.Errorf("%s: %d commands, asked %d times", user, commands, polls)
				}
				e.Passes(held, "the waiter", got)
				if after := d.m.Stats(); after.Polls > now.Polls+20 || e.kind.Virtual && after.Reconnects > 0 {
					e.Errorf("%s: %+v", user, after)
				}
				// One in the beginning, then after 1, 2 and 4 s.
				if n := d.p.Count(redistest.Command("subscribe")); n > 2+int64(time.Since(since)/time.Second) {
					e.Errorf("%s: subscribed %d times", user, n)
				}
				if n := d.warned(""); n != 1 {
					e.Errorf("%s: %d warnings: %q", user, n, d.With(""))
				}
			})
		}
	},

	// Deaf waiters of several processes all get the lock, also beside one that hears: they poll. A release that may not publish
	// is a release.
	"DeniedWaitersTakeTurns": func(e *Env) {
		e.permit("nothing", "resetchannels -publish")
		var s Section
		var all sync.WaitGroup
		poll := holdfast.WithPollInterval(200 * time.Millisecond)
		for _, m := range []*holdfast.Manager{e.denied("nothing", poll).m, e.denied("nothing", poll).m, e.Manager(poll)} {
			all.Go(func() {
				for range 3 {
					l := e.MustLock(e.Lock(m))
					s.Enter(e, time.Millisecond)
					e.MustUnlock(l)
				}
				if n := m.Stats().Reconnects; n > 0 && e.kind.Virtual { // a connection that stands still is replaced
					e.Errorf("%d reconnections", n)
				}
			})
		}
		all.Wait()
		e.srv.RequireNoKeys(e, Tombstones) // of requests that took too long
	},

	// Once the user has the right, a waiter is told of its grant.
	"DeniedWaiterIsHealed": func(e *Env) {
		e.permit("user", "resetchannels")
		d := e.denied("user", byMessage...)
		held := e.MustLock(e.Lock(e.Manager(byMessage...)))
		got := e.Locking(e.Lock(d.m))
		e.Eventually("the log tells", func() bool { return d.warned("holdfast_inbox:*") == 1 })
		e.permit("user", "&*")
		e.Eventually("the log tells of the end", func() bool { return d.told("INFO holdfast: permitted to subscribe now", "holdfast_inbox:*") == 1 })
		e.Listening(1)
		e.Eventually("nothing is under way", func() bool { return d.m.Stats().Waiting == 1 && d.m.Stats().Subscriptions > 0 })
		before := d.m.Stats().Wakeups
		e.Passes(held, "the waiter", got)
		if s := d.m.Stats(); s.Wakeups == before {
			e.Errorf("not by a message: %+v", s)
		}
		// And the other way: Redis closes the connection of a process that has lost the right. The process tells Redis that its waiter does not hear.
		held = e.MustLock(e.Lock(e.Manager(byMessage...)))
		got = e.Locking(e.Lock(d.m))
		e.Listening(1)
		e.permit("user", "resetchannels")
		e.Eventually("the log tells again", func() bool { return d.warned("holdfast_inbox:*") == 2 })
		e.Passes(held, "the waiter", got)
	},

	// Who may not listen to Redisson's channels is told of grants, and finds out by asking that Redisson
	// has released the lock.
	"DeniedRedissonsChannelsLeaveTheInbox": func(e *Env) {
		e.permit("user", "resetchannels &holdfast_inbox:*")
		d := e.denied("user", holdfast.WithPollInterval(200*time.Millisecond))
		release := e.HeldByRedisson(e.Key)
		got := e.Locking(e.Lock(d.m))
		family, _, _ := strings.Cut(e.Channel(e.Key), ":")
		e.Eventually("the log tells", func() bool { return d.warned(family) == 1 })
		e.Listening(1)
		release()
		e.MustUnlock(<-got)
		e.Eventually("its inbox is not heard any more", func() bool { return e.inboxes() == 0 })
		m, other := e.denied("user", byMessage...).m, e.Manager(byMessage...)
		for round := 0; m.Stats().Wakeups == 0; round++ { // the request that follows the denial can be faster than a message
			held := e.MustLock(e.Lock(other))
			got = e.Locking(e.Lock(m))
			e.Listening(1)
			e.Passes(held, "the waiter", got)
			if round == 5 {
				e.Fatalf("not by a message: %+v", m.Stats())
			}
		}
		if n := d.m.Stats().Reconnects + m.Stats().Reconnects; e.kind.Virtual && n > 0 || d.warned("") != 1 {
			e.Errorf("%d reconnections, %q", n, d.With(""))
		}
	},

	// Who may listen to Redisson's channels only is told by Redisson.
	"DeniedInboxLeavesRedissonsChannels": func(e *Env) {
		e.permit("user", "resetchannels &redisson_*")
		d := e.denied("user", byMessage...)
		release := e.HeldByRedisson(e.Key)
		got := e.Locking(e.Lock(d.m))
		e.Eventually("the log tells", func() bool { return d.warned("holdfast_inbox:*") == 1 })
		e.Eventually("it listens to Redisson's releases", func() bool { return e.srv.NumSub(e.Channel(e.Key)) == 1 })
		release()
		e.MustUnlock(<-got)
		if s := d.m.Stats(); s.Wakeups == 0 || e.kind.Virtual && s.Reconnects > 0 || d.warned("") != 1 {
			e.Errorf("%+v, %q", s, d.With(""))
		}
	},
}

// permit gives a user all rights but those to channels, and of these and commands what rights says.
func (e *Env) permit(user, rights string) {
	e.Helper()
	args := append([]any{"ACL", "SETUSER", user, "on", ">secret", "~*", "+@all"}, e.Server().Rights(strings.Fields(rights))...)
	redistest.Must(e, e.Server().Admin().Do(bg, args...).Err())
}

// deniedUser is a manager of a user that may not do everything.
type deniedUser struct {
	m *holdfast.Manager
	p *redistest.Proxy // of all its connections
	*Lines
}

// denied returns a manager of a user.
func (e *Env) denied(user string, opts ...holdfast.Option) deniedUser {
	e.Helper()
	lines, logged := Logged()
	d := deniedUser{p: e.Server().Proxy(e), Lines: lines}
	d.p.Record()
	opt := d.p.Options()
	opt.Username, opt.Password = user, "secret"
	d.m = e.ManagerOn(e.client(opt), append(slices.Clone(opts), logged)...)
	return d
}

// warned returns how many warnings about channels were logged.
func (d deniedUser) warned(channels string) int {
	return d.told("WARN holdfast: not permitted to subscribe; polling instead", "channels="+channels)
}

// told returns how many lines contain all texts.
func (d deniedUser) told(texts ...string) int { return len(d.With(texts...)) }
