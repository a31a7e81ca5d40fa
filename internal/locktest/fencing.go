package locktest

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

var fencingScenarios = map[string]func(*Env){
	"ReentryWithFencingNeedsAToken": func(e *Env) {
		m := e.Manager()
		outer := e.MustLock(e.Lock(m))
		_, err := e.Lock(m, holdfast.WithFencing()).Lock(outer.Context(bg))
		e.WantErr(err, holdfast.ErrInvalidOption) // rather than a lease with token 0
		e.MustUnlock(outer)
	},

	// S9, AC-66
	"FencingTokensGrow": func(e *Env) {
		var last uint64
		a, b := e.Manager(), e.Manager()
		check := func(l *holdfast.Lease) {
			e.Helper()
			if l.Token() <= last {
				e.Errorf("token %d after %d", l.Token(), last)
			}
			last = l.Token()
		}
		for range 20 {
			for _, m := range []*holdfast.Manager{a, b} {
				l := e.MustLock(e.Lock(m, holdfast.WithFencing()))
				check(l)
				e.MustUnlock(l)
			}
		}
		l := e.MustLock(e.Lock(a, holdfast.WithFencing(), holdfast.WithFixedLease(50*time.Millisecond)))
		check(l)
		e.WantLost(l, holdfast.LostDeadline)
		l = e.MustLock(e.Lock(b, holdfast.WithFencing()))
		check(l)
		e.srv.Admin().Del(bg, e.Key)
		e.srv.Admin().ScriptFlush(bg)
		l = e.MustLock(e.Lock(a, holdfast.WithFencing()))
		check(l)
		e.MustUnlock(l)
		// AC-65: the counter is lost. This process goes on above what it has seen.
		e.srv.Admin().FlushAll(bg)
		l = e.MustLock(e.Lock(a, holdfast.WithFencing()))
		check(l)
		e.MustUnlock(l)
		// AC-63: the counter is one key without TTL, as Redisson's.
		counter := "redisson_lock_token:{" + e.Key + "}"
		e.srv.RequireNoKeys(e, counter)
		e.srv.RequireTTLs(e, counter)
		if n := e.srv.Admin().Get(bg, counter).Val(); n == "" {
			e.Error("no counter under Redisson's name")
		}
	},

	// Each caller of a process gets a token of its own, whichever caller passed it the lock.
	"FencingTokensGrowByHandoff": func(e *Env) {
		m := e.Manager()
		l := e.Lock(m, holdfast.WithFencing())
		first := e.MustLock(l)
		const n = 50
		tokens := make(chan uint64, n)
		var holders sync.WaitGroup
		for range n {
			holders.Go(func() {
				got := e.MustLock(l)
				tokens <- got.Token()
				e.MustUnlock(got)
			})
		}
		e.Parked(m, n)
		last := first.Token()
		e.MustUnlock(first)
		for range n {
			token := <-tokens
			if token <= last {
				e.Errorf("token %d after %d", token, last)
			}
			last = token
		}
		holders.Wait()
	},
}
