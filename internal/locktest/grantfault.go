package locktest

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// grantFaultScenarios are about waiters that die or are stopped when they are granted the
// lock, and about a server that forgets scripts or is restarted meanwhile.
var grantFaultScenarios = map[string]func(*Env){
	// What a process costs the others that dies, or stands still, when it is its turn:
	// nothing, or the claim.
	"KilledGrantee": func(e *Env) {
		held := e.MustLock(e.Lock(e.Manager()))
		p := e.StartWaiter(time.Hour, time.Hour)
		p.Send("lock 0")
		e.Listening(1)
		dead := e.srv.Admin().LIndex(bg, e.queue(), 0).Val()
		got := e.bystander(e.Manager())
		p.Kill()
		e.Listening(1) // Redis knows
		start := time.Now()
		e.MustUnlock(held)
		// In a cluster no node can tell who listens.
		if _, ok := e.Holders()[dead]; ok && e.kind.Client == nil {
			e.Errorf("granted to %s, which is dead", dead)
		}
		l := <-got
		e.Logf("a killed grantee cost %v", time.Since(start))
		redistest.WantMost(e, time.Since(start), e.bound(3*claim), "it cost %v")
		e.MustUnlock(l)
	},

	"StoppedGrantee": func(e *Env) {
		held := e.MustLock(e.Lock(e.Manager(holdfast.WithLease(20 * time.Second)))) // the claim is no longer for it
		p := e.StartWaiter(time.Hour, time.Hour)
		p.Send("lock 0")
		e.Listening(1)
		got := e.bystander(e.Manager())
		p.Pause()
		start := time.Now()
		e.MustUnlock(held)
		l := <-got
		d := time.Since(start)
		e.Worst("L5:behind-one-that-is-stopped", d)
		redistest.WantMost(e, d, e.bound(3*claim), "it cost %v")
		p.Resume() // the message is in its socket, and nothing to be trusted
		select {
		case <-time.After(100 * time.Millisecond):
		case <-l.Done():
			e.Errorf("it disturbed the holder: %v", l.Err())
		}
		e.MustUnlock(l)
		p.Expect(e, "got 0")
		p.Send("unlock 0")
		p.Expect(e, "unlocked 0 <nil>")
	},

	// The server goes and comes back with its data while processes wait for each other.
	"RestartWhileWaiting": func(e *Env) {
		e.Server(redistest.WithAOF())
		a, b := e.Manager(), e.Manager()
		held := e.MustLock(e.Lock(e.Manager(holdfast.WithLease(5 * time.Second))))
		first, second := e.bystander(a), e.bystander(b)
		e.srv.Restart()
		start := time.Now()
		_ = held.Unlock(bg) // its outcome may be unknown; the release goes on
		for range 2 {
			select {
			case l := <-first:
				e.MustUnlock(l)
			case l := <-second:
				e.MustUnlock(l)
			}
		}
		d := time.Since(start)
		e.Logf("both served %v after the restart", d)
		if d > e.bound(5*time.Second+time.Second+prompt) { // a lease and a second, on a slow machine
			e.Errorf("both served only %v after the restart", d)
		}
		e.Eventually("no keys", func() bool { return onlyTombstones(e) })
	},

	"FlushedScriptsWhileHandingOver": func(e *Env) {
		var wg sync.WaitGroup
		var s Section
		stop := make(chan struct{})
		flusher := e.Server().Admin()
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					flusher.ScriptFlush(bg)
				}
			}
		})
		var workers sync.WaitGroup
		for range 3 {
			m := e.Manager()
			workers.Go(func() {
				for range 60 {
					l := e.MustLock(e.Lock(m))
					s.Enter(e, 0)
					e.MustUnlock(l)
				}
			})
		}
		workers.Wait()
		close(stop)
		wg.Wait()
	},
}
