package locktest

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// places returns the ids that stand in the queue, and for how many of them there is a
// time until when their place is kept.
func (e *Env) places() (ids []string, kept int64) {
	e.Helper()
	admin := e.Server().Admin()
	return admin.LRange(bg, "redisson_lock_queue:{"+e.Key+"}", 0, -1).Val(),
		admin.ZCard(bg, "redisson_lock_timeout:{"+e.Key+"}").Val()
}

// Standing waits until n ids stand in the queue.
func (e *Env) Standing(n int) {
	e.Helper()
	e.Eventually(fmt.Sprintf("%d in the queue", n), func() bool {
		ids, _ := e.places()
		return len(ids) == n
	})
}

// Enqueue begins n calls of Lock at m, one after the other: each stands in the queue
// before the next one comes.
func (e *Env) Enqueue(m *holdfast.Manager, n int) []<-chan *holdfast.Lease {
	e.Helper()
	ids, _ := e.places()
	var all []<-chan *holdfast.Lease
	for i := range n {
		got := e.Locking(e.Lock(m))
		e.Standing(len(ids) + i + 1)
		all = append(all, got)
	}
	return all
}

// history reads from the server's own log who came, in order, and who was granted the
// lock, in order.
func (e *Env) history(mon *redistest.Monitor) (came, granted []string) {
	e.Helper()
	end := fmt.Sprintf("end of %s at %d", e.Key, time.Now().UnixNano())
	e.srv.Admin().Echo(bg, end)
	mon.Wait(e, end, patience)
	push := regexp.MustCompile(`lua\] "rpush" "redisson_lock_queue:\{` + e.Key + `\}" "([^"]+)"`)
	grant := regexp.MustCompile(`lua\] "hset" "` + e.Key + `" "([^"]+)"`)
	for _, line := range mon.Lines() {
		if m := push.FindStringSubmatch(line); m != nil {
			came = append(came, m[1])
		} else if m := grant.FindStringSubmatch(line); m != nil {
			granted = append(granted, m[1])
		}
	}
	return came, granted
}

// fairScenarios are for kinds whose waiters have a place each. L5.
var fairScenarios = map[string]func(*Env){
	// A place in the queue is kept as a hold is, and is none.
	"WaitersAreNotHolders": func(e *Env) {
		held, m := e.MustLock(e.Lock(e.Manager())), e.Manager()
		waiting := e.Enqueue(m, 3)
		if s := m.Stats(); s.Held != 0 || s.Waiting != 3 {
			e.Errorf("%d held, %d waiting", s.Held, s.Waiting)
		}
		e.MustUnlock(held)
		first := <-waiting[0]
		if s := m.Stats(); s.Held != 1 || s.Waiting != 2 {
			e.Errorf("then %d held, %d waiting", s.Held, s.Waiting)
		}
		e.MustUnlock(first)
		for _, got := range waiting[1:] {
			e.MustUnlock(<-got)
		}
	},

	// AC-58: 20 waiters of four processes, 20 ms apart; the order is the server's.
	"OrderOfArrivalOverProcesses": func(e *Env) {
		a, b := e.Manager(), e.Manager()
		p, q := e.StartWaiter(lease, 5*time.Second), e.StartWaiter(lease, 5*time.Second)
		const rounds, n = 5, 20
		for round := range rounds {
			held := e.MustLock(e.Lock(e.Manager()))
			mon := e.srv.Monitor(e)
			var wg sync.WaitGroup
			pace := time.NewTicker(20 * time.Millisecond)
			for i := range n {
				switch i % 4 {
				case 0, 1:
					m := []*holdfast.Manager{a, b}[i%4]
					wg.Go(func() { e.MustUnlock(e.MustLock(e.Lock(m))) })
				case 2:
					p.Send(fmt.Sprint("take ", i))
				case 3:
					q.Send(fmt.Sprint("take ", i))
				}
				<-pace.C
			}
			pace.Stop()
			e.Standing(n)
			e.MustUnlock(held)
			wg.Wait()
			for range n / 4 {
				p.Expect(e, "took")
				q.Expect(e, "took")
			}
			came, granted := e.history(mon)
			if len(came) != n || !slices.Equal(came, granted) {
				e.Fatalf("round %d: came\n%q, granted\n%q", round, came, granted)
			}
		}
	},

	// AC-59: the holder goes on and on; nobody loses a place by waiting for long.
	"LongWaitKeepsThePlace": func(e *Env) {
		const kept = 2 * time.Second
		held := e.MustLock(e.Lock(e.Manager()))
		a, b := e.Manager(holdfast.WithFairPatience(kept)), e.Manager(holdfast.WithFairPatience(kept))
		mon := e.srv.Monitor(e)
		first := e.Enqueue(a, 3)
		second := e.Enqueue(b, 2)
		before, _ := e.places()
		for over := time.After(3 * kept); ; {
			ids, times := e.places()
			if !slices.Equal(ids, before) || times != int64(len(ids)) {
				e.Fatalf("the queue has become %q, %d kept, from %q", ids, times, before)
			}
			select {
			case <-over:
			case <-time.After(20 * time.Millisecond):
				continue
			}
			break
		}
		e.MustUnlock(held)
		for _, got := range append(first, second...) {
			e.MustUnlock(<-got)
		}
		if _, granted := e.history(mon); !slices.Equal(granted, before) {
			e.Errorf("granted\n%q, came\n%q", granted, before)
		}
	},

	// Whoever leaves, leaves the queue, also if Redis cannot hear of it just then.
	"LeavingLeavesTheQueue": func(e *Env) {
		srv := e.Server()
		for _, tc := range []struct {
			name   string
			before func()
			after  func()
		}{
			{"healthy", func() {}, func() {}},
			{"frozen", srv.Pause, srv.Resume},
			{"writes paused", func() { srv.Admin().Do(bg, "CLIENT", "PAUSE", "700", "WRITE") }, func() {}},
		} {
			held := e.MustLock(e.Lock(e.Manager(holdfast.WithLease(10 * time.Second))))
			// Nobody's place runs out by itself.
			m, closing := e.Manager(holdfast.WithFairPatience(time.Minute)), e.Manager(holdfast.WithFairPatience(time.Minute))
			ctx, cancel := context.WithCancel(bg)
			later, stop := context.WithCancel(bg)
			results := make(chan error, 3)
			for i, wait := range []struct {
				m   *holdfast.Manager
				ctx context.Context
			}{{m, ctx}, {m, later}, {closing, bg}} {
				go func() { _, err := e.Lock(wait.m).Lock(wait.ctx); results <- err }()
				e.Standing(i + 1)
			}
			stays := e.Enqueue(m, 1)[0]
			tc.before()
			left := time.Now()
			cancel()
			time.AfterFunc(300*time.Millisecond, stop) // Redis is still in trouble
			_ = closing.Close(bg)
			for range 3 {
				if err := <-results; err == nil {
					e.Errorf("%s: granted", tc.name)
				}
			}
			if d := time.Since(left); d > time.Second+prompt {
				e.Errorf("%s: returned after %v", tc.name, d)
			}
			tc.after()
			healed := time.Now()
			e.Eventually(tc.name+": only one stands", func() bool {
				ids, kept := e.places()
				return len(ids) == 1 && kept == 1
			})
			e.Logf("%s: gone %v after", tc.name, time.Since(healed).Round(time.Millisecond))
			e.MustUnlock(held)
			e.MustUnlock(<-stays)
			e.Clean(m, Tombstones)
		}
	},

	// A process dies in the queue: the others do not even notice.
	"KilledInTheQueue": func(e *Env) {
		holder := e.Manager()
		held := e.MustLock(e.Lock(holder))
		m, proxy := e.Via()
		p, q := e.StartWaiter(lease, time.Minute), e.StartWaiter(lease, time.Minute)
		p.Send("take 0")
		e.Standing(1)
		first := e.Enqueue(m, 1)[0]
		p.Send("take 1")
		e.Standing(3)
		q.Send("take 2")
		e.Standing(4)
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

	// A process stands still in the queue, and Redis cannot know: one claim for each of
	// its waiters. AC-62's other half: L5's bound for the dead.
	"StoppedInTheQueue": func(e *Env) {
		held := e.MustLock(e.Lock(e.Manager()))
		m, proxy := e.Via()
		p := e.StartWaiter(20*time.Second, time.Minute)
		p.Send("take 0")
		e.Standing(1)
		got := e.Enqueue(m, 1)[0]
		e.Listening(2)
		p.Pause()
		proxy.Record()
		start := time.Now()
		e.MustUnlock(held)
		l := <-got
		d := time.Since(start)
		e.Logf("served %v after the release: the claim of one stopped waiter is %v", d, claim)
		if d > 3*claim {
			e.Errorf("served after %v", d)
		}
		e.Worst("L5:behind-one-that-is-stopped", d)
		if n := proxy.Count(isCommand); n > 50 {
			e.Errorf("%d commands: %q", n, proxy.Commands())
		}
		e.MustUnlock(l)
		p.Resume()
		p.Expect(e, "took 0")
		e.Clean(m)
	},

	// A process that was silent for longer than its patience was passed over; when it is
	// back, its waiters are first again, in their order.
	"ResumedProcessIsFirstAgain": func(e *Env) {
		const kept = 2 * time.Second
		held := e.MustLock(e.Lock(e.Manager()))
		p := e.StartWaiter(20*time.Second, kept)
		for i := range 4 {
			p.Send(fmt.Sprint("lock ", i))
			e.Standing(i + 1)
		}
		before, _ := e.places()
		m := e.Manager()
		next := e.Enqueue(m, 1)[0]
		e.Listening(2)
		p.Pause()
		e.Eventually("the places are over", func() bool {
			n, err := e.srv.Admin().Eval(bg, `local t = redis.call('time')
				return redis.call('zcount', KEYS[1], '-inf', t[1] * 1000 + t[2] / 1000)`,
				[]string{"redisson_lock_timeout:{" + e.Key + "}"}).Int()
			return err == nil && n == 4
		})
		e.MustUnlock(held)
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

	// An id without a time: Redisson's own scripts wait for it for ever.
	"EntryWithoutScoreIsRepaired": func(e *Env) {
		held := e.MustLock(e.Lock(e.Manager()))
		queue := "redisson_lock_queue:{" + e.Key + "}"
		e.srv.Admin().RPush(bg, queue, "5c6a0a3c-0f5e-4a37-9f1f-0d8f9c6b1a11:77", "hf-00000000-0000-4000-8000-000000000000:1")
		m, proxy := e.Via()
		got := e.Locking(e.Lock(m))
		e.Standing(3)
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

	"TryLockNeverStandsInTheQueue": func(e *Env) {
		held := e.MustLock(e.Lock(e.Manager()))
		m := e.Manager()
		mon := e.srv.Monitor(e)
		for range 20 {
			_, err := e.Lock(m).TryLock(bg)
			e.WantErr(err, holdfast.ErrNotAcquired)
		}
		waits := e.Enqueue(m, 1)[0]
		_, err := e.Lock(m).TryLock(bg) // behind one that waits
		e.WantErr(err, holdfast.ErrNotAcquired)
		e.MustUnlock(held)
		e.MustUnlock(<-waits)
		if came, _ := e.history(mon); len(came) != 1 {
			e.Errorf("came: %q", came)
		}
		e.Clean(m)
	},

	// AC-60: callers that come and give up again and again move nobody's time.
	"GivingUpLeavesNoDrift": func(e *Env) {
		holder := e.Manager()
		held := e.MustLock(e.Lock(holder))
		var wg sync.WaitGroup
		for range 3 {
			m := e.Manager()
			wg.Go(func() {
				for range 100 {
					ctx, cancel := context.WithTimeout(bg, 15*time.Millisecond)
					_, err := e.Lock(m).Lock(ctx)
					cancel()
					e.WantErr(err, context.DeadlineExceeded)
				}
			})
		}
		wg.Wait()
		e.Standing(0)
		m := e.Manager()
		waits := e.Enqueue(m, 1)[0]
		times := e.srv.Admin().ZRangeWithScores(bg, "redisson_lock_timeout:{"+e.Key+"}", 0, -1).Val()
		now := e.srv.Admin().Time(bg).Val()
		if len(times) != 1 {
			e.Fatalf("times %v", times)
		}
		if left := time.UnixMilli(int64(times[0].Score)).Sub(now); left < 2*time.Second || left > 5*time.Second+time.Millisecond {
			e.Errorf("the place is kept for %v", left)
		}
		start := time.Now()
		e.MustUnlock(held)
		e.MustUnlock(<-waits)
		if d := time.Since(start); d > prompt {
			e.Errorf("served after %v", d)
		}
		e.Clean(m, Tombstones)
	},

	// The manager of a queue that is busy everywhere spins nowhere.
	"NoHotLoopBehindTheDead": func(e *Env) {
		admin := e.Server().Admin()
		release := e.HeldByRedisson(e.Key)
		queue, times := "redisson_lock_queue:{"+e.Key+"}", "redisson_lock_timeout:{"+e.Key+"}"
		now := admin.Time(bg).Val()
		const dead = "5c6a0a3c-0f5e-4a37-9f1f-0d8f9c6b1a11:99"
		admin.RPush(bg, queue, dead)
		admin.ZAdd(bg, times, zAt(now.Add(330*time.Second), dead))
		m, proxy := e.Via()
		got := e.Locking(e.Lock(m))
		e.Standing(2)
		proxy.Record()
		start := time.Now()
		release() // the lock is free, and a dead waiter of Redisson is next
		l := <-got
		d := time.Since(start)
		e.Logf("the dead waiter of Redisson cost %v and %d commands", d, proxy.Count(isCommand))
		if n := proxy.Count(isCommand); n > 50 {
			e.Errorf("%d commands: %q", n, strings.Join(slices.Concat(proxy.Commands()...), " "))
		}
		e.MustUnlock(l)
		e.Clean(m)
	},
}
