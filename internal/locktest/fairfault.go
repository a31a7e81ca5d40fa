package locktest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// fairFaultScenarios are about waiters of a fair lock that die, are stopped, or lose their place. L5.
var fairFaultScenarios = map[string]func(*Env){
	// A process dies in the queue: the others do not even notice.
	"KilledInTheQueue": func(e *Env) {
		holder := e.Manager()
		held := e.MustLock(e.Lock(holder))
		m, proxy := e.Via()
		p, q := e.StartWaiter(lease, time.Hour), e.StartWaiter(lease, time.Hour)
		p.Send("take 0")
		e.Queued(1)
		first := e.Enqueue(m, 1)[0]
		p.Send("take 1")
		e.Queued(3)
		q.Send("take 2")
		e.Queued(4)
		second := e.Enqueue(m, 1)[0]
		e.Listening(3)
		order, _ := e.places()
		p.Kill()
		q.Kill()
		e.Listening(1) // Redis knows
		proxy.Record()
		start := time.Now()
		alive := func() { // a release passes the lock over the dead, none of whom has it for a claim
			e.Helper()
			for id := range e.Holders() {
				if id != order[1] && id != order[4] {
					e.Errorf("granted to %s, which is dead", id)
				}
			}
		}
		e.MustUnlock(held)
		alive()
		e.MustUnlock(<-first)
		alive()
		e.MustUnlock(<-second)
		e.Logf("served %v after the release, over three dead waiters", time.Since(start))
		if n := proxy.Count(isCommand); n > 50 {
			e.Errorf("%d commands: %q", n, proxy.Commands())
		}
		e.Clean(m)
	},

	// A process that was silent for longer than its patience was passed over; when it is
	// back, its waiters are first again, in their order.
	"ResumedProcessIsFirstAgain": func(e *Env) {
		const kept = 2 * time.Second
		held := e.MustLock(e.Lock(e.Manager()))
		p := e.StartWaiter(time.Hour, kept)
		for i := range 4 {
			p.Send(fmt.Sprint("lock ", i))
			e.Queued(int64(i + 1))
		}
		before, _ := e.places()
		m := e.Manager()
		next := e.Enqueue(m, 1)[0]
		e.Listening(2)
		p.Pause()
		e.Eventually("the places are over", func() bool {
			n, err := e.srv.Admin().Eval(bg, // and the second in which they end
				`return redis.call('zcount', KEYS[1], '-inf', '(' .. redis.call('time')[1] .. '000')`,
				[]string{"redisson_lock_timeout:{" + e.Key + "}"}).Int()
			return err == nil && n == 4
		})
		e.MustUnlock(held)
		for id := range e.Holders() {
			if slices.Contains(before, id) {
				e.Errorf("granted to %s, whose place is over", id)
			}
		}
		l := <-next // at once, over four that are silent
		last := e.Enqueue(m, 1)[0]
		p.Resume()
		e.Eventually("they stand in front again", func() bool {
			ids, _ := e.places()
			return len(ids) == 5
		})
		if ids, _ := e.places(); !slices.Equal(ids[:4], before) {
			e.Errorf("the queue is\n%q, it was\n%q", ids, before)
		}
		e.MustUnlock(l)
		var order []string
		for range 8 { // "got" of the next may come before "unlocked"
			line := p.ReadLine(e, patience)
			if x, ok := strings.CutPrefix(line, "got "); ok {
				order = append(order, x)
				p.Send("unlock " + x)
			} else if !strings.HasSuffix(line, " <nil>") {
				e.Error(line)
			}
		}
		if !slices.Equal(order, []string{"0", "1", "2", "3"}) {
			e.Errorf("order %q", order)
		}
		e.MustUnlock(<-last)
		e.Clean(m, Tombstones)
	},

	// L4: the first of a process is granted by its own request, which leaves the next one no
	// timer of its own; the holder in between dies. (A fixed lease is what asks.)
	"NextOfTheProcessNoticesAnExpiry": func(e *Env) {
		m, other := e.Manager(), e.Manager()
		fixed := holdfast.WithFixedLease(time.Second)
		held := e.MustLock(e.Lock(e.Manager()))
		first := e.InQueue(1, e.Lock(m, fixed))
		between := e.InQueue(2, e.Lock(other, fixed))
		next := e.InQueue(3, e.Lock(m, fixed))
		e.Passes(held, "the first", first)
		<-e.Soon("the one in between", between).Done() // it never unlocks
		e.MustUnlock(e.Soon("the next of the first's process", next))
	},

	// L3, L4: the first of a process leaves while its request is under way; the waiter that is
	// first then finds out by itself that the holder has died.
	"NextOfOneWhoLeftNoticesAnExpiry": func(e *Env) {
		m, p := e.Via()
		held := e.MustLock(e.Lock(e.Manager(), holdfast.WithFixedLease(lease)))
		ctx, leave := context.WithCancel(bg)
		first := e.kind.Async(e.Lock(m), ctx)
		e.Queued(1)
		e.Listening(1)
		next := e.Enqueue(m, 1)[0]
		asks := p.HoldReply(acquireOf(e.Key))
		asks.Wait(e)
		leave()
		e.WantErr((<-first).Err, context.Canceled)
		asks.Release()
		<-held.Done()
		e.MustUnlock(e.Soon("the one behind", next))
	},

	// An id without a time: Redisson's own scripts wait for it forever.
	"EntryWithoutScoreIsRepaired": func(e *Env) {
		held := e.MustLock(e.Lock(e.Manager()))
		queue := "redisson_lock_queue:{" + e.Key + "}"
		e.srv.Admin().RPush(bg, queue, "5c6a0a3c-0f5e-4a37-9f1f-0d8f9c6b1a11:77", "hf-00000000-0000-4000-8000-000000000000:1")
		m, proxy := e.Via()
		got := e.InQueue(3, e.Lock(m))
		proxy.Record()
		start := time.Now()
		e.MustUnlock(held)
		l := <-got
		e.Logf("served after %v", time.Since(start))
		if n := proxy.Count(isCommand); n > 50 {
			e.Errorf("%d commands: %q", n, proxy.Commands())
		}
		e.MustUnlock(l)
		e.Clean(m)
	},

	// Several wait, and Redis takes no writes, so that none has a place yet: there is a pause between requests.
	"RefusedWaitersKeepTheirPauses": func(e *Env) {
		e.Server().Admin().ConfigSet(bg, "min-replicas-to-write", "1")
		m := e.Manager()
		var got []<-chan *holdfast.Lease
		for range 3 {
			got = append(got, e.Locking(e.Lock(m)))
		}
		e.Parked(m, 3)
		e.Eventually("it has asked a few times", func() bool { return m.Stats().Troubles >= 3 })
		before, begun := m.Stats().Commands, time.Now()
		e.Eventually("and goes on asking", func() bool { return m.Stats().Commands >= before+5 })
		if d := time.Since(begun); d < 50*time.Millisecond { // a round trip takes at most a fifth of one
			e.Errorf("five requests in %v", d)
		}
		e.srv.Admin().ConfigSet(bg, "min-replicas-to-write", "0")
		var wg sync.WaitGroup
		for _, l := range got {
			wg.Go(func() { e.MustUnlock(<-l) })
		}
		wg.Wait()
		e.Clean(m, Tombstones)
	},
}
