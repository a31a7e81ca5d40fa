package locktest

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

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
			e.Errorf("%q", u.lines())
		}
	},

	// No message arrives by any connection: the process polls, tries again more and more rarely, and is healed in the end.
	"UnheardProcessPolls": func(e *Env) {
		u := e.unheard()
		u.p.Hush(true)
		e.contend(u.m, e.Manager(), func() {
			e.Eventually("it tries the fourth connection", func() bool { return u.p.Count(redistest.Command("subscribe")) >= 4 })
			if s := u.m.Stats(); s.Unheard != 1 || s.Polls == 0 || u.told("WARN") != 1 {
				e.Errorf("%+v, %q", s, u.lines())
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
	u := deniedUser{p: e.Server().Proxy(e), log: &logLines{Handler: slog.DiscardHandler}}
	u.p.Record()
	u.m = e.ManagerOn(e.client(u.p.Options()), slices.Concat(opts, []holdfast.Option{holdfast.WithLogger(slog.New(u.log))})...)
	return u
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
