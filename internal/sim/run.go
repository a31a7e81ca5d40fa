package sim

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/judge"
)

// Result is what a run has shown.
type Result struct {
	Plan  *Plan
	Found []judge.Violation
	Stats Stats
	trace trace
	names *strings.Replacer
	end   time.Duration
}

// Trace returns what happened before the first violation, for so long, and a second after it.
func (r *Result) Trace(last time.Duration) string {
	since := r.end
	if len(r.Found) > 0 {
		since = r.Found[0].At
	}
	return r.trace.last(max(0, since-last), r.names)
}

// Run runs a plan. It is to be called in a bubble of testing/synctest.
func Run(plan *Plan) *Result {
	w := newWorld(plan)
	w.mu.Lock()
	for slot := range plan.Processes {
		w.processes = append(w.processes, nil)
		w.born = append(w.born, make(chan struct{}))
		w.atLocked(plan.Processes[slot].Start, func() {
			w.processes[slot] = w.newProcessLocked(slot, 0)
			close(w.born[slot])
			w.born[slot] = make(chan struct{})
		})
	}
	w.scheduleLocked()
	w.mu.Unlock()
	go w.run()
	for slot := range plan.Processes {
		for n := range plan.Processes[slot].Workers {
			k := &worker{w: w, slot: slot, n: n}
			w.running.Go(func() { k.run(plan.Processes[slot].Workers[n].Steps) })
		}
	}
	done := make(chan struct{})
	time.AfterFunc(plan.Length, func() {
		w.mu.Lock()
		w.ended = true
		w.mu.Unlock()
	})
	go func() { w.running.Wait(); close(done) }()
	w.await(done)
	w.finish()
	return &Result{Plan: plan, Found: w.judge.Found, Stats: w.stats, trace: w.trace, names: w.names(), end: w.now()}
}

// patience is how long after the last section has begun all calls must have returned.
const patience = time.Minute

// await waits until all workers have made their sections.
func (w *World) await(done chan struct{}) {
	sleepUntil := func(t time.Duration) bool {
		timer := time.NewTimer(t - w.now())
		defer timer.Stop()
		select {
		case <-done:
			return true
		case <-timer.C:
			return false
		}
	}
	if sleepUntil(w.plan.Length + recovery) {
		return
	}
	close(w.closing) // leases that are kept may be what others wait for
	if sleepUntil(w.plan.Length + patience) {
		return
	}
	w.mu.Lock()
	for _, u := range w.units {
		for _, x := range u.Waits {
			w.judge.failLocked("starved", "%s has waited for %v since %v; Redis has %v, and the queue is %v until %v", x.Who, u, x.Since, u.State.Holders, u.State.Queue, u.State.Kept)
		}
	}
	for _, p := range w.all {
		p.die()
	}
	w.mu.Unlock()
	if !sleepUntil(w.plan.Length + 2*patience) {
		panic(fmt.Sprintf("calls do not return\n%s", stacks()))
	}
}

// finish looks whether all works in the end, and nothing is left.
func (w *World) finish() {
	select {
	case <-w.closing:
	default:
		close(w.closing)
	}
	w.mu.Lock()
	w.healed = true
	rest := max(0, w.faulty-w.now())
	w.mu.Unlock()
	time.Sleep(rest + recovery + longestLease)
	w.fresh()
	w.mu.Lock()
	w.judge.Closed = true
	all := w.all
	w.mu.Unlock()
	for _, p := range all {
		for _, m := range p.managers {
			if err := m.Close(context.Background()); err != nil && !p.dead && !p.closed {
				w.fail("close", "%v: %v", p, err)
			}
		}
		p.closeClients()
		p.die()
		for _, m := range p.managers {
			for _, part := range partsOf(m) {
				parts.Delete(part)
			}
		}
	}
	w.leftovers("", "tombstones", "token", "leader")
	time.Sleep(61 * time.Second)
	w.leftovers(" after a minute", "token", "leader")
	w.mu.Lock()
	w.stats.Simulated = w.now()
	for _, s := range w.servers {
		for _, p := range all {
			for _, c := range p.links {
				if c.s == s && !c.up.hole {
					w.judge.failLocked("connections", "one of %v is left", c.p)
				}
			}
		}
		s.stopLocked()
	}
	w.mu.Unlock()
	w.pumps.Wait()
	close(w.over)
	time.Sleep(time.Second)
	if left := leftGoroutines(); left != "" {
		panic(fmt.Sprintf("seed %d, %s: goroutines are left:\n%s", w.plan.Seed, w.plan.Shape, left)) // the bubble cannot end
	}
}

func (w *World) fail(rule, format string, args ...any) {
	w.mu.Lock()
	w.judge.failLocked(rule, format, args...)
	w.mu.Unlock()
}

// fresh has a new process take each lock.
func (w *World) fresh() {
	w.mu.Lock()
	p := w.newProcessLocked(len(w.processes), 0)
	w.processes = append(w.processes, p)
	w.mu.Unlock()
	within := longestLease
	if w.lossyLocked() {
		within *= 4 // places that came back with the data are granted the lock first
	}
	for i := range p.locks {
		h := &p.locks[i]
		ctx, cancel := context.WithTimeout(p.ctx, within)
		lease, err := h.write.Lock(ctx)
		cancel()
		if err != nil {
			w.fail("not free in the end", "%s: %v", h.plan.Name, err)
			continue
		}
		if err := lease.Unlock(context.Background()); err != nil {
			w.fail("odd error", "Unlock in the end: %v", err)
		}
	}
	time.Sleep(mostAtLeast) // they stay taken for so long
}

// leftovers finds keys that no process needs any more.
func (w *World) leftovers(when string, but ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.servers {
		keys, _ := s.redis.Do("keys", "*").([]any)
	next:
		for _, k := range keys {
			for _, b := range but {
				if strings.Contains(k.(string), b) {
					continue next
				}
			}
			if w.plan.Shape == Semaphores && (k == "permits" || k == "{permits}:timeout" && s.redis.Do("zcount", k.(string), fmt.Sprint("(", s.clock()/1000), "+inf") == int64(0)) {
				continue // how many are available; those of the dead, whose time is over, are collected by the next request
			}
			if w.lossyLocked() && (strings.Contains(k.(string), "_timeout:{")) {
				continue // of a queue that an administrator has deleted
			}
			w.judge.failLocked("left behind", "%s%s, for %v ms", k, when, s.redis.Do("pttl", k.(string)))
		}
	}
}

// stacks are those of the bubble's goroutines.
func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

// leftGoroutines returns the stacks of the goroutines of this bubble, but for this one and those that wait for it.
func leftGoroutines() string {
	all := strings.Split(stacks(), "\n\n")
	_, bubble, ok := strings.Cut(strings.SplitN(all[0], "\n", 2)[0], "synctest bubble ")
	if !ok {
		return ""
	}
	bubble = "synctest bubble " + strings.TrimSuffix(bubble, "]:")
	var left []string
	for _, g := range all[1:] {
		if title, _, _ := strings.Cut(g, "\n"); strings.Contains(title, bubble+"]") || strings.Contains(title, bubble+",") {
			if !strings.Contains(g, "testing/synctest.testingSynctestTest") && !strings.Contains(g, "synctest.Run(") {
				left = append(left, g)
			}
		}
	}
	return strings.Join(left, "\n\n")
}

// lossyLocked reports whether data was lost.
func (w *World) lossyLocked() bool {
	return slices.ContainsFunc(w.units, func(u *unit) bool { return u.lost >= 0 })
}
