package sim

import (
	"container/heap"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/retry"
)

// event is what happens at a time, with World.mu held.
type event struct {
	at time.Duration
	n  uint64 // decides between events of one moment
	do func()
}

// agenda is what is to happen, the earliest first.
type agenda []event

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].n < a[j].n
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(event)) }
func (a *agenda) Pop() any {
	last := len(*a) - 1
	e := (*a)[last]
	*a = (*a)[:last]
	return e
}

// mostEvents is more than a world needs: the busiest of 2,500 had 63,000.
var mostEvents uint64 = 1 << 20

// countLocked counts an event. A world that has too many runs away: a part of it repeats something without a pause, which would last forever and
// take all memory.
func (w *World) countLocked() {
	if w.events++; w.events > mostEvents {
		panic(fmt.Sprintf("seed %d, %s: runs away, with %d events and %d commands in %v\n%s",
			w.plan.Seed, w.plan.Shape, w.events, w.stats.Commands, w.now(), w.trace.last(w.now()-10*time.Millisecond, w.names())))
	}
}

// atLocked has do called at a time after the beginning, with mu held.
func (w *World) atLocked(t time.Duration, do func()) {
	w.countLocked()
	heap.Push(&w.agenda, event{max(t, w.now()), w.events, do})
	if w.agenda[0].n == w.events {
		select {
		case w.nudge <- struct{}{}:
		default:
		}
	}
}

func (w *World) afterLocked(d time.Duration, do func()) { w.atLocked(w.now()+d, do) }

// run is the goroutine that makes events happen, until over is closed. The judge looks after each.
func (w *World) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		w.mu.Lock()
		for len(w.agenda) > 0 && w.agenda[0].at <= w.now() {
			heap.Pop(&w.agenda).(event).do()
			w.judge.lookLocked()
		}
		wait := time.Hour
		if len(w.agenda) > 0 {
			wait = w.agenda[0].at - w.now()
		}
		w.mu.Unlock()
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-w.nudge:
		case <-w.over:
			return
		}
	}
}

// The pauses between repeated requests depend on the moment at which the first one is made: worlds run side by side, and pauses do not know
// whose they are.
func init() {
	retry.Seed = func() uint64 { return mix(uint64(time.Now().UnixNano())) }
}
