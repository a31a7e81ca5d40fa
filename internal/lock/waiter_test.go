package lock

import (
	"testing"
	"time"
)

// FuzzQueue compares the queue with a slice under any sequence of operations. A waiter is removed once: by its grant, or because it
// leaves.
func FuzzQueue(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 2, 1, 0, 2})
	f.Add([]byte{0, 0, 0, 0, 0, 1, 4, 7, 2, 2, 0, 0, 4, 2}) // the first, one in the middle, and the last
	f.Fuzz(func(t *testing.T, ops []byte) {
		var q queue
		var model []*Waiter
		for i, op := range ops {
			switch op % 3 {
			case 0:
				w := &Waiter{after: uint64(i)}
				q.push(w)
				model = append(model, w)
			case 1: // cancel somewhere
				if len(model) > 0 {
					k := int(op/3) % len(model)
					if !q.remove(model[k]) || q.remove(model[k]) {
						t.Fatal("a waiter is not removed once")
					}
					model = append(model[:k], model[k+1:]...)
				}
			case 2: // grant the front
				if w := q.head; w != nil {
					if !q.remove(w) {
						t.Fatal("Remove of the front reports false")
					}
					model = model[1:]
				}
			}
			w := q.head
			for _, want := range model {
				if w != want {
					t.Fatalf("after op %d the order differs", i)
				}
				w = w.next
			}
			if w != nil || q.len != len(model) {
				t.Fatalf("after op %d: %d waiters, want %d", i, q.len, len(model))
			}
		}
	})
}

// A TryLock that takes over the bid of another one waits for the holder's answer for as long as that one did: not for what the other
// one has left of its time.
func TestBid_TheNextTryLockHasItsOwnTime(t *testing.T) {
	terms := new(Terms)
	tryLock := By{Handle: &Handle{Terms: terms}, Kind: MutexKind}
	first, next := &Waiter{By: tryLock, Once: true}, &Waiter{By: tryLock, Once: true}
	l := new(Lock)
	l.Init(MutexKind, nil, nil)
	l.bid = &Bid{claim: &Hold{Lock: l, Terms: terms, phase: standing}, waiter: first, asks: 1}
	l.onces = 2
	l.waiters.push(next)
	l.leaveBid(nil, first)
	if l.bid.waiter != next || l.bid.asks != 0 {
		t.Errorf("the bid is for %p until %v, want %p and no time yet", l.bid.waiter, l.bid.asks, next)
	}
}

// What a lock admits displaces nothing: a grant of a permit does not look at the others of the process, which may be thousands.
func TestSharedHolds_AdmitOthers(t *testing.T) {
	l := new(Lock)
	l.Init(SemaphoreKind, nil, nil)
	l.take(&Hold{Lock: l, Kind: SemaphoreKind})
	if !l.admits(SemaphoreKind) || l.admits(MutexKind) {
		t.Errorf("a permit beside a permit: %v, a mutex: %v", l.admits(SemaphoreKind), l.admits(MutexKind))
	}
	l.take(&Hold{Lock: l, Kind: MutexKind})
	if l.admits(SemaphoreKind) {
		t.Error("a permit beside what excludes it")
	}
}

// A read hold that is gone leaves nothing of the downgrade that made it: the entry of a forgotten name would keep its leases.
func TestReadHolds_ForgetTheirDowngrade(t *testing.T) {
	h := new(Hold)
	d := &Downgrade{Reader: h}
	d.settled = true
	r := &sharedHolds{holds: []*Hold{h}, converting: d}
	r.remove(nil, h, nil)
	if !r.none() || r.converting != nil {
		t.Errorf("%d holds are left, and the downgrade %p", len(r.holds), r.converting)
	}
}

// A round that was long only because its caller stepped aside is not a long one: else
// a caller that has stepped aside once would always do so.
func TestAbsence_IsNotLongForHavingSteppedAside(t *testing.T) {
	for aside, want := range map[time.Duration]time.Duration{0: 90 * time.Minute, time.Hour: 30 * time.Minute} {
		now := time.Now()
		var m Moment
		m.Begin(nil, new(Settings))
		m.Date(now)
		l := &Lock{absence: &absence{since: now.Add(-90 * time.Minute), aside: aside}}
		l.returned(&m)
		if l.absence.before != want {
			t.Errorf("a caller stepped aside for %v: the lock was away for %v, want %v", aside, l.absence.before, want)
		}
	}
}

// roomy is a world of which only room for effects is asked.
type roomy struct{ World }

func (roomy) Room() *Effects { return new(Effects) }

// What is to run for a lock is what its state wants when an event ends, whatever the event has changed on the way.
func TestWants_FollowTheState(t *testing.T) {
	l := new(Lock)
	h := &Hold{Lock: l, phase: held}
	r := &Repeated{lock: l, copies: copies{flying: maxCopies}} // nothing is sent when its pause is over
	event := func(step func(m *Moment)) *Effects {
		m := new(Moment)
		m.Begin(roomy{}, new(Settings))
		m.Date(time.Now())
		step(m)
		return m.Room
	}
	event(func(m *Moment) {
		l.arm(m, alarmPoll, time.Hour)
		l.disarm()
		r.resumes = m.Age() + time.Hour
		m.syncPause(r)
		r.resume(m)
	})
	if l.Rings != 0 || r.Resumes() != 0 {
		t.Errorf("the alarm is to fire at %v, and the pause to end at %v: both are over", l.Rings, r.Resumes())
	}
	x := event(func(m *Moment) {
		l.arm(m, alarmPoll, time.Hour)
		r.resumes = m.Age() + time.Hour
		m.syncPause(r)
		h.Limit = &Limit{At: m.Now().Add(time.Hour), hold: h}
		m.syncLimit(h.Limit)
	})
	limit := h.Limit
	if l.Rings == 0 || r.Resumes() == 0 || !limit.Runs() || len(x.Pauses) != 1 || len(x.Limits) != 1 {
		t.Errorf("the alarm fires at %v, the pause ends at %v, the limit runs: %v; %d pauses and %d limits are told of", l.Rings, r.Resumes(), limit.Runs(), len(x.Pauses), len(x.Limits))
	}
	x = event(func(m *Moment) {
		l.disarm()
		r.resume(m)
		h.endLimit(m)
	})
	if l.Rings != 0 || r.Resumes() != 0 || limit.Runs() || len(x.Pauses) != 1 || len(x.Limits) != 1 {
		t.Error("something runs for what is over, or it is not told of")
	}
}
