package sim

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// recovery is how long it may take until a fault that has ended makes no difference any more: go-redis's time-outs, sessions
// that are made anew, requests that are repeated.
const recovery = 8 * time.Second

// World is one run of a plan. mu guards all but what is said to be otherwise.
type World struct {
	plan  *Plan // not changed
	began time.Time

	mu        sync.Mutex
	agenda    agenda
	events    uint64     // so far: what was put on the agenda, and dials
	servers   []*server  // not changed
	processes []*process // by slot: the one that lives, or lived last
	all       []*process
	units     []*unit
	judge     *court
	trace     trace
	stats     Stats
	tickets   []*ticket              // that are to be attached
	faulty    time.Duration          // when the last fault ends
	healed    bool                   // no fault happens any more
	ended     bool                   // no section begins any more
	rechecks  map[time.Duration]bool // when the judge looks without an event
	born      []chan struct{}        // by slot: closed when a process starts

	nudge   chan struct{}  // the agenda has a new first event
	closing chan struct{}  // closed when the managers are about to be
	over    chan struct{}  // closed at the end
	running sync.WaitGroup // workers, and processes that end
	pumps   sync.WaitGroup
}

// Stats are what a run did.
type Stats struct {
	Commands, Merged, Calls, Grants, Faults, Attached, StoodAside int
	Simulated                                                     time.Duration
}

func newWorld(plan *Plan) *World {
	w := &World{plan: plan, began: time.Now(), nudge: make(chan struct{}, 1), over: make(chan struct{}), closing: make(chan struct{}), rechecks: map[time.Duration]bool{}}
	w.judge = newCourt(w)
	for n := range plan.Servers {
		w.servers = append(w.servers, newServer(w, n))
	}
	return w
}

func (w *World) now() time.Duration { return time.Since(w.began) }

// chance is a number that depends on the seed and on a place in the run, and not on what was drawn before: who comes first
// makes no difference to the others.
func (w *World) chance(place ...uint64) uint64 {
	z := mix(w.plan.Seed)
	for _, x := range place {
		z = mix(z ^ x)
	}
	return z
}

func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

// draws returns the chance of a manager: a number depends on the seed, on the manager and on the moment.
func (w *World) draws(slot, life, server int) func(int64) int64 {
	return func(below int64) int64 {
		return int64(w.chance(uint64(slot)<<16|uint64(life)<<8|uint64(server), uint64(w.now()), uint64(below), 9) % uint64(below))
	}
}

// chanceLocked is a time between a fifth of most and most.
func (w *World) chanceLocked(most time.Duration, place ...uint64) time.Duration {
	return most/5 + time.Duration(w.chance(place...)%uint64(most-most/5))
}

// delayLocked is how long a packet takes. The moment and what it says decide, so it makes no difference which of several goroutines sends first,
// over which connection, and what has been sent before.
func (w *World) delayLocked(c *link, d *way, what uint64) time.Duration {
	stream := uint64(2)
	if d == &c.up {
		stream = 3
	}
	place := []uint64{uint64(c.p.slot)<<16 | uint64(c.p.life)<<8 | uint64(c.s.n), what, uint64(w.now()), stream}
	t := w.chanceLocked(w.plan.Latency, place...)
	if spike := w.chance(append(place, 4)...); w.plan.Spikes && spike%31 == 0 {
		t += w.plan.Latency * time.Duration(spike>>20%20)
	}
	if slow := c.p.slow + c.slow; slow > 0 {
		t += w.chanceLocked(slow, append(place, 5)...)
	}
	return t
}

// flushLocked lets packets go on whose way is open again.
func (w *World) flushLocked() {
	for _, p := range w.all {
		for _, c := range slices.Clone(p.links) {
			c.flushLocked()
		}
	}
}

func newRand(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(mix(seed), stream)) }
