package locktest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Every matches one of n requests that m matches.
func Every(n int, m redistest.Match) redistest.Match {
	i := 0
	return func(cmd []string) bool {
		if !m(cmd) {
			return false
		}
		i++
		return i%n == 0
	}
}

// strangerScenarios are about what stands between the client and Redis, and answers in its place.
var strangerScenarios = map[string]func(*Env){
	// F7: replies in the middle of pipelines are the proxy's own, are missing, or end half-way.
	"AnswersInTheMiddleOfPipelines": func(e *Env) {
		m, p := e.Via(holdfast.WithLease(time.Hour), holdfast.WithPollInterval(50*time.Millisecond))
		const names, callers, rounds = 8, 3, 4
		p.AnswerError(Every(3, script), math.MaxInt, "upstream failure")
		p.AnswerError(Every(7, script), math.MaxInt, "")
		p.BreakReply(Every(9, script), 20)
		p.LoseReply(Every(11, script), 20)
		p.LoseRequest(Every(13, script), 20)
		var all sync.WaitGroup
		for i := range names {
			var s Section
			l := e.kind.Lock(m, fmt.Sprint(e.Key, i))
			for range callers {
				all.Go(func() {
					for range rounds {
						ctx, cancel := context.WithTimeout(bg, 4*patience) // there are many pauses
						got, err := l.Lock(ctx)
						cancel()
						if err != nil {
							e.Error(err)
							return
						}
						s.Enter(e, 0)
						end := time.Now().Add(patience)
						err = got.Unlock(bg)
						for errors.Is(err, holdfast.ErrUnavailable) && time.Now().Before(end) {
							err = got.Unlock(bg)
						}
						redistest.Check(e, err)
					}
				})
			}
		}
		all.Wait()
		p.Heal()
		e.Clean(m, Tombstones)
	},

	// F9: a user that was let in before is retried. A release that is denied for longer than Unlock waits goes
	// on, and can be asked for again.
	"DeniedForAWhile": func(e *Env) {
		client, allow := e.limited()
		m := e.ManagerOn(client, holdfast.WithLease(time.Hour), holdfast.WithPollInterval(50*time.Millisecond))
		e.MustUnlock(e.MustLock(e.Lock(m)))
		for _, rules := range [][2][]any{
			{{"-evalsha", "-eval"}, {"+evalsha", "+eval"}}, {{"resetkeys"}, {"~*"}},
		} {
			deny, permit := rules[0], rules[1]
			held := e.MustLock(e.Lock(e.Manager(holdfast.WithLease(time.Hour))))
			got := e.InQueue(1, e.Lock(m))
			before := m.Stats().Troubles
			allow(deny...)
			e.Eventually("it is denied", func() bool { return m.Stats().Troubles > before+2 })
			allow(permit...)
			e.MustUnlock(held)
			l := <-got
			if l == nil {
				return
			}
			allow(deny...)
			err := l.Unlock(bg)
			e.WantErr(err, holdfast.ErrUnavailable)
			if err != nil && !strings.Contains(err.Error(), "NOPERM") && (e.kind.Virtual || !strings.Contains(err.Error(), "no answer")) {
				e.Errorf("%v does not say NOPERM", err)
			}
			allow(permit...)
			e.Eventually("it goes on", func() bool { return len(e.Holders()) == 0 })
			e.MustUnlock(l)
		}
		allow("-evalsha", "-eval")
		failed := make(chan error, 1)
		opt := e.srv.Options()
		opt.Username, opt.Password = "limited", "secret"
		stranger := e.Lock(e.ManagerOn(e.client(opt)))
		go func() { _, err := stranger.Lock(bg); failed <- err }()
		e.WantErr(redistest.Next(e, failed, "one that was never let in waits"), holdfast.ErrUnavailable)
		allow("+evalsha", "+eval")
		e.Clean(m, Tombstones)
	},

	// A client that was closed before the manager ends what waits for it, and what comes.
	"ClosedClient": func(e *Env) {
		client := e.client(e.Server().Options())
		m := e.ManagerOn(client, holdfast.WithPollInterval(time.Hour), holdfast.WithFairPatience(time.Hour))
		mine := e.MustLock(e.kind.Lock(m, "mine", holdfast.WithLease(time.Hour)))
		lost := e.MustLock(e.kind.Lock(m, "lost", holdfast.WithLease(time.Second)))
		held := e.MustLock(e.Lock(e.Manager(holdfast.WithLease(time.Hour))))
		var failed []<-chan error
		wait := func(lock func() error) {
			c := redistest.Begin(func() error { return lock() })
			failed = append(failed, c)
		}
		for range 3 {
			wait(func() error { _, err := e.Lock(m).Lock(bg); return err })
		}
		wait(func() error { return (<-e.kind.Async(e.Lock(m), bg)).Err })
		e.Parked(m, 4)
		e.Eventually("they are heard", func() bool { return e.srv.Admin().LLen(bg, e.queue()).Val() > 0 && e.inboxes() == 1 })
		client.Close()
		wait(func() error { _, err := e.Lock(m).Lock(bg); return err })
		wait(func() error { _, err := e.kind.Lock(m, "free").Lock(bg); return err })
		wait(func() error { _, err := e.kind.Lock(m, "free").TryLock(bg); return err })
		wait(func() error { return (<-e.kind.Async(e.kind.Lock(m, "free"), bg)).Err })
		wait(func() error { return mine.Unlock(bg) })
		wait(func() error { return lost.Extend(bg, lease) })
		wait(func() error { _, err := m.Inspect(bg, e.Key); return err })
		wait(func() error { _, err := m.ForceUnlock(bg, e.Key); return err })
		for i, c := range failed {
			select {
			case err := <-c:
				e.WantErr(err, holdfast.ErrUnavailable, redis.ErrClosed)
			case <-time.After(patience):
				e.Errorf("%d waits", i)
			}
		}
		e.WantErr(mine.Unlock(bg), holdfast.ErrUnavailable, redis.ErrClosed)
		e.WantLost(lost, holdfast.LostDeadline)
		e.MustLock(e.kind.Lock(e.Manager(), "lost")) // when its TTL has ended
		other := e.Manager()
		for range 2 { // nothing waits for the TTL of what was never taken
			e.MustUnlock(e.MustLock(e.kind.Lock(other, "free")))
		}
		start := time.Now()
		_ = m.Close(bg) // all that it had to release has failed before
		redistest.WantMost(e, time.Since(start), e.bound(prompt), "Close returned after %v")
		e.MustUnlock(held)
	},

	// Close says that it could not release what was held.
	"ClosedClientIsToldByClose": func(e *Env) {
		client := e.client(e.Server().Options())
		m := e.ManagerOn(client, holdfast.WithLease(time.Hour))
		e.MustLock(e.Lock(m))
		client.Close()
		start := time.Now()
		e.WantErr(m.Close(bg), holdfast.ErrUnavailable, redis.ErrClosed)
		redistest.WantMost(e, time.Since(start), e.bound(prompt), "Close returned after %v")
	},
}
