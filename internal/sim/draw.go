package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Draw draws the plan of a seed.
func Draw(seed uint64) *Plan { return DrawShape(seed, Shapes[seed%uint64(len(Shapes))]) }

// DrawShape draws a plan of a shape.
func DrawShape(seed uint64, shape Shape) *Plan {
	d := &draft{Rand: newRand(seed, 1), Plan: Plan{
		Seed: seed, Shape: shape, Servers: 1, Length: 20 * time.Second,
		Options: Options{Lease: time.Second, Poll: time.Second, Patience: 5 * time.Second, Slice: 10 * time.Millisecond},
	}}
	d.network()
	switch shape {
	case Elections:
		d.elections()
		d.faults()
		return &d.Plan
	case Crowd:
		d.crowd()
	default:
		d.locks()
		d.processes()
	}
	d.faults()
	d.stays()
	d.widen()
	d.addWanted(d.addTickets(false) && seed%2 == 0)
	d.addValues(false)
	if newRand(seed, 15).IntN(4) == 0 {
		d.addLingerers()
	}
	if d.Shape == OneServer && newRand(seed, 4).IntN(8) == 0 {
		d.addLeavers()
	}
	return &d.Plan
}

// draft is a plan that is being drawn.
type draft struct {
	*rand.Rand
	Plan
	renews bool // it has steady workers
}

// one chooses.
func one[T any](d *draft, from ...T) T { return from[d.IntN(len(from))] }

// upTo is a time, mostly a short one.
func (d *draft) upTo(most time.Duration) time.Duration {
	return min(most, time.Duration(d.ExpFloat64()*float64(most)/4))
}

func (d *draft) network() {
	d.Latency = one(d, 400*time.Microsecond, time.Millisecond, time.Millisecond, 15*time.Millisecond)
	d.Spikes = d.IntN(2) == 0 && d.Latency <= time.Millisecond // else requests are overdue without a fault
	d.Drift = one(d, 0, 2e-4, -2e-4)
	o := &d.Options
	o.Slice = one(d, 0, 10*time.Millisecond, 10*time.Millisecond, time.Second)
	switch d.IntN(6) {
	case 0, 1, 2: // a message that is lost costs a long time
		o.Poll, o.Patience = 10*time.Second, 40*time.Second
	case 3: // who is away for a moment loses its place
		o.Patience = time.Second
	}
	switch d.Shape {
	case Majority:
		d.Servers = one(d, 3, 3, 5)
	case WithReplicas:
		o.Replicas, o.AckIn = one(d, 1, 2), one(d, 30*time.Millisecond, 200*time.Millisecond)
	}
}

// locks draws few, so that callers meet.
func (d *draft) locks() {
	if d.Shape == Semaphores {
		for range one(d, 1, 2, 2, 3) {
			d.Locks = append(d.Locks, one(d, Lock{Permits: 1}, Lock{Permits: 1}, Lock{Permits: 2}, Lock{Permits: 1, Lease: 800 * time.Millisecond, Fixed: true},
				Lock{Permits: 2, Lease: longestLease}, Lock{Permits: 1, Lease: 500 * time.Millisecond, MaxHold: 700 * time.Millisecond}))
			l := &d.Locks[len(d.Locks)-1]
			l.Name, l.Kind = "permits", Semaphore
		}
		return
	}
	if d.Shape == Majority {
		d.Locks = append(d.Locks, Lock{Name: "vote", Kind: Redlock, Member: one(d, Mutex, Mutex, Fair, RW), Lease: one(d, time.Second, longestLease)})
		return
	}
	all := []Lock{
		{Name: "mutex", Kind: Mutex},
		{Name: "mutex", Kind: Mutex, Lease: longestLease, Fencing: true},
		{Name: "fair", Kind: Fair, Fencing: true},
		{Name: "fair", Kind: Fair},
		{Name: "rw", Kind: RW, Lease: 2 * time.Second, Fencing: true},
		{Name: "rw", Kind: RW},
		{Name: "rw", Kind: RW, Lease: 800 * time.Millisecond, Fixed: true},
		{Name: "rw", Kind: RW, Lease: 500 * time.Millisecond, MaxHold: 700 * time.Millisecond},
		{Name: "fair", Kind: Fair, Lease: 800 * time.Millisecond, Fixed: true},
		{Name: "fair", Kind: Fair, Lease: 500 * time.Millisecond, MaxHold: 700 * time.Millisecond},
		{Name: "fixed", Kind: Mutex, Lease: 800 * time.Millisecond, Fixed: true},
		{Name: "mutex", Kind: Mutex, Lease: 500 * time.Millisecond, MaxHold: 700 * time.Millisecond},
	}
	if d.IntN(2) == 0 { // those of one name, by different options
		name := one(d, "mutex", "fair", "rw", "rw")
		all = slices.DeleteFunc(all, func(l Lock) bool { return l.Name != name })
	}
	for range one(d, 1, 2, 2, 3) {
		d.Locks = append(d.Locks, one(d, all...))
	}
	if d.Shape == OneServer && d.IntN(4) == 0 {
		a, b := Lock{Name: "first", Kind: one(d, Mutex, Fair)}, Lock{Name: "second", Kind: one(d, Mutex, Fair, RW)}
		d.Locks = append(d.Locks, a, b)
		n := len(d.Locks)
		d.Locks = append(d.Locks, Lock{Name: "first+second", Kind: Multi, Of: []int{n - 2, n - 1}})
	}
}

func (d *draft) processes() {
	d.renews = d.Shape != Majority && d.IntN(2) == 0
	lease := one(d, 0, longestLease)
	think := one(d, 2*time.Millisecond, 30*time.Millisecond, 200*time.Millisecond)
	hold := one(d, 3*time.Millisecond, 30*time.Millisecond, 300*time.Millisecond)
	// Faults are to meet callers: the world lasts for about as long as their sections.
	d.Length = min(max(100*(think+hold), 3*time.Second), 20*time.Second)
	for n := range 2 + d.IntN(2) {
		p := Process{Start: d.upTo(20 * time.Millisecond)}
		for range 1 + d.IntN(3) {
			p.Workers = append(p.Workers, Worker{d.steps(think, hold)})
		}
		if d.IntN(3) == 0 {
			p.Workers = append(p.Workers, Worker{d.hasty(hold)})
		}
		for _, name := range []string{"steady", "calm"} { // two, which are renewed by one request
			if d.renews {
				p.Workers = append(p.Workers, Worker{d.steady(fmt.Sprint(name, " ", n), lease)})
			}
		}
		if n == 2 && d.IntN(2) == 0 {
			p.Workers = []Worker{{d.seldom()}}
		}
		d.Processes = append(d.Processes, p)
	}
}

// crowd draws many locks, and as many workers of a process, each with another lock at a time: they ask at the same moments.
func (d *draft) crowd() {
	kind := one(d, Mutex, Mutex, Fair, RW)
	fencing := d.IntN(2) == 0
	for n := range 16 + d.IntN(16) {
		d.Locks = append(d.Locks, Lock{Name: fmt.Sprint("n", n), Kind: kind, Fencing: fencing, Lease: one(d, 0, longestLease)})
	}
	pace := one(d, 5*time.Millisecond, 20*time.Millisecond)
	d.Length = 3 * time.Second
	for n := range 2 {
		p := Process{}
		for k := range d.Locks {
			steps := make([]Step, 40)
			for i := range steps {
				s := Step{After: pace, Lock: (k + i + 3*n*i) % len(d.Locks), Way: one(d, ByLock, ByLock, ByLock, ByTry), Hold: pace, Over: d.IntN(3) == 0}
				s.Read = kind == RW && d.IntN(3) == 0
				if d.IntN(8) == 0 {
					s.Limit, s.Cancel = 1+d.upTo(10*time.Millisecond), d.IntN(2) == 0
				}
				steps[i] = s
			}
			p.Workers = append(p.Workers, Worker{steps})
		}
		d.Processes = append(d.Processes, p)
	}
}

// hasty is for a worker that leaves as answers and grants are on their way, and comes back before they have come.
func (d *draft) hasty(hold time.Duration) []Step {
	steps := make([]Step, 100)
	for i := range steps {
		s := d.aStep(0, hold/4)
		s.After, s.Way, s.Inside, s.End = d.upTo(2*d.Latency), ByLock, nil, ""
		s.Limit, s.Cancel = 1+d.upTo(8*d.Latency), true
		if i%3 == 0 { // the caller waits for it this time
			s.Limit = 0
		}
		steps[i] = s
	}
	return steps
}

// linger is how long a process hears a channel on which no caller of it waits any more (internal/pubsub).
const linger = 250 * time.Millisecond

// seldom is for the only worker of a process, which comes back as the process is about to leave its inbox.
func (d *draft) seldom() []Step {
	steps := make([]Step, 80)
	for i := range steps {
		steps[i] = d.aStep(0, 0)
		steps[i].After, steps[i].Way, steps[i].Limit, steps[i].Inside, steps[i].End = linger-d.Latency-time.Duration(d.Int64N(int64(d.Latency))), ByLock, 0, nil, ""
	}
	return steps
}

// steady is for a worker that holds a lock of its own for long: what its renewals are worth shows there.
func (d *draft) steady(name string, lease time.Duration) []Step {
	d.Locks = append(d.Locks, Lock{Name: name, Kind: Mutex, Lease: lease})
	steps := make([]Step, 4)
	for i := range steps {
		steps[i] = Step{After: d.upTo(20 * time.Millisecond), Lock: len(d.Locks) - 1, Hold: time.Duration(d.Int64N(int64(8 * time.Second))), Over: d.IntN(4) > 0}
	}
	return steps
}

func (d *draft) steps(think, hold time.Duration) []Step {
	steps := make([]Step, 20+d.IntN(80))
	for i := range steps {
		steps[i] = d.aStep(think, hold)
	}
	return steps
}

func (d *draft) aStep(think, hold time.Duration) Step {
	s := Step{After: d.upTo(4 * think), Lock: d.IntN(len(d.Locks)), Way: one(d, ByLock, ByLock, ByLock, ByTry, ByAsync), Hold: d.upTo(4 * hold)}
	l := &d.Locks[s.Lock]
	s.Read = l.Kind == RW && d.IntN(5) < 3
	if d.IntN(3) == 0 {
		s.Limit = 1 + d.upTo(one(d, 10*time.Millisecond, 200*time.Millisecond, 2*time.Second))
		s.Cancel = d.IntN(2) == 0
	}
	if d.IntN(12) == 0 { // until the lease has long ended, if it is not renewed
		s.Hold = time.Duration(d.Int64N(int64(2 * time.Second)))
	}
	s.Over = d.IntN(3) == 0
	for range d.IntN(8) / 6 {
		s.Inside = append(s.Inside, one(d, Reenter, Downgrade, Downgrade, Extend))
	}
	switch d.IntN(100) {
	case 0:
		s.End = Never
	case 1, 2:
		s.Way = ByInspect
	case 3:
		if d.Shape == FailOver {
			s.Way = ByForce
		}
	}
	return s
}

// faults draws none, gentle ones, safe ones, or those that lose data.
func (d *draft) faults() {
	var from []fault
	switch d.IntN(7) {
	case 0:
	case 1:
		from = gentle
	case 2:
		from = slices.Concat(brief, gentle)
	case 3:
		from = slices.Concat(safe, gentle)
	case 4:
		from = slices.Concat(stalls, stalls, stalls, brief, gentle)
	default:
		from = safe
	}
	switch {
	case d.Shape == FailOver:
		from = one(d, byHand, slices.Concat(byHand, lossy), slices.Concat(byHand, lossy, lossy, safe))
	case d.Shape == WithReplicas && d.IntN(2) == 0:
		from = slices.Concat(from, ofReplicas)
	case d.Shape == Majority && d.IntN(2) == 0:
		from = slices.Concat(ofMembers, ofMembers[1:])
	}
	if len(from) == 0 {
		return
	}
	if d.renews && slices.ContainsFunc(from, func(f fault) bool { return f.name == lateRenewal }) {
		for n := range d.Processes {
			d.Faults = append(d.Faults, Fault{At: d.upTo(d.Length), Kind: lateRenewal, Process: n})
		}
	}
	pace := d.Length / time.Duration(one(d, 4, 10, 40))
	for at := d.upTo(4 * pace); at < d.Length; at += 1 + d.upTo(4*pace) {
		d.Faults = append(d.Faults, Fault{
			At: at, Kind: one(d, from...).name, For: 1 + d.upTo(3*time.Second), Process: d.IntN(len(d.Processes)), Server: d.IntN(d.Servers),
			Lock: d.IntN(len(d.Locks)), Script: one(d, "acquire", "release", "renew", "", "join", "keep", "downgrade", "demand"), Which: d.IntN(16),
		})
	}
}
