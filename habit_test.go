package holdfast_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Who comes back finds the place that its last release has taken, and pays one command for
// an acquisition instead of two.
func TestHabit_PlaceIsBooked(t *testing.T) {
	p := newBaton(t, never, holdfast.WithFencing())
	held := p.books()
	for _, key := range []string{"redisson_lock_queue:{a}", "redisson_lock_timeout:{a}"} {
		if ttl := p.srv.Admin().PTTL(t.Context(), key).Val(); ttl <= 0 {
			t.Errorf("%s has a TTL of %v", key, ttl)
		}
	}
	p.srv.ResetStats()
	got := p.lockOf(p.a).LockAsync(t.Context())
	token := held.Token()
	mustUnlock(t, held)
	lease := p.granted(got)
	if n := p.srv.CommandCalls("evalsha", "eval"); n != 1 {
		t.Errorf("%d requests, want the release only", n)
	}
	if lease.Token() <= token {
		t.Errorf("token %d after %d", lease.Token(), token)
	}
	mustUnlock(t, lease)
}

// A grant that comes before the caller waits for it.
func TestHabit_GrantIsThere(t *testing.T) {
	for name, take := range map[string]func(*holdfast.Mutex, context.Context) (*holdfast.Lease, error){
		"Lock": (*holdfast.Mutex).Lock, "TryLock": (*holdfast.Mutex).TryLock,
	} {
		t.Run(name, func(t *testing.T) {
			p := newBaton(t, never)
			p.offered(p.books())
			p.srv.ResetStats()
			lease, err := take(p.lockOf(p.a), t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if n := p.srv.CommandCalls("evalsha", "eval"); n != 0 {
				t.Errorf("%d requests", n)
			}
			mustUnlock(t, lease)
			p.free()
		})
	}
}

// TryLock does not wait for the place, and leaves it to who does.
func TestHabit_TryLockIsRefused(t *testing.T) {
	p := newBaton(t, never)
	held := p.books()
	_, err := p.lockOf(p.a).TryLock(t.Context())
	wantErr(t, err, holdfast.ErrNotAcquired, nil)
	if n := len(p.queued()); n != 1 {
		t.Errorf("%d places are taken", n)
	}
	got := p.lockOf(p.a).LockAsync(t.Context())
	mustUnlock(t, held)
	mustUnlock(t, p.granted(got))
	p.free()
}

// A caller whose options are others has a place of its own.
func TestHabit_OtherOptions(t *testing.T) {
	for _, granted := range []bool{false, true} {
		p := newBaton(t, never)
		held := p.books()
		if granted {
			p.offered(held)
		}
		const fixed = time.Minute
		p.opts = []holdfast.LockOption{holdfast.WithFixedLease(fixed)}
		got := p.lockOf(p.a).LockAsync(t.Context())
		if !granted {
			redistest.Eventually(t, patience, "one place is taken", func() bool { return len(p.queued()) == 1 })
			mustUnlock(t, held)
		}
		lease := p.granted(got)
		if left := time.Until(lease.Deadline()); left > fixed || left < fixed/2 {
			t.Errorf("it ends in %v, its lease is %v", left, fixed)
		}
		mustUnlock(t, lease)
		p.free()
	}
}

// Where nobody comes back, the place is left, and the lock given to the next.
func TestHabit_NobodyComes(t *testing.T) {
	p := newBaton(t, soon)
	held := p.books()
	redistest.Eventually(t, patience, "the place is left", func() bool { return len(p.queued()) == 0 })
	mustUnlock(t, held)
	p.free()

	held = p.books()
	c := managerOn(t, p.srv, holdfast.WithPollInterval(time.Hour), holdfast.WithFairPatience(time.Hour), holdfast.WithLease(time.Hour))
	got := p.asks(c)
	mustUnlock(t, held)           // to a
	mustUnlock(t, p.granted(got)) // who polls in an hour is told only by the one that gives it back
	p.free()
}

// After a long hold nothing is booked.
func TestHabit_LongHold(t *testing.T) {
	p := newBaton(t, soon)
	mustUnlock(t, p.books())
	p.free()
	lease := p.learns()
	other := p.asks(p.b)
	time.Sleep(soon) // work under the lock
	mustUnlock(t, lease)
	held := p.granted(other)
	if n := len(p.queued()); n != 0 {
		t.Errorf("%d places are taken", n)
	}
	mustUnlock(t, held)
}

func TestHabit_CloseGivesUp(t *testing.T) {
	for _, granted := range []bool{false, true} {
		p := newBaton(t, never)
		held := p.books()
		if granted {
			p.offered(held)
		}
		if err := p.a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !granted {
			if n := len(p.queued()); n != 0 {
				t.Errorf("%d places are taken", n)
			}
			mustUnlock(t, held)
		}
		p.free()
	}
}

// A place behind one of Redisson's is not booked.
func TestHabit_NotBehindRedisson(t *testing.T) {
	p := newBaton(t, never)
	lease := p.learns()
	other := p.asks(p.b)
	admin, waiter := p.srv.Admin(), "5f4e1c43-0000-4000-8000-000000000000:1"
	admin.ZAdd(t.Context(), "redisson_lock_timeout:{a}", redis.Z{Score: float64(time.Now().Add(5 * time.Minute).UnixMilli()), Member: waiter})
	admin.RPush(t.Context(), "redisson_lock_queue:{a}", waiter)
	mustUnlock(t, lease)
	mustUnlock(t, p.granted(other))
	if got := p.queued(); !slices.Equal(got, []string{waiter}) {
		t.Errorf("the queue is %v", got)
	}
}

// A lock is left open for Redisson, and the next of ours is a place that nobody has come for:
// who comes, asks. Redisson only listens here, and does not take it.
func TestHabit_LeftOpen(t *testing.T) {
	p := newBaton(t, never)
	p.srv.Client(t).Subscribe(t.Context(), "redisson_lock__channel:{a}")
	redistest.Eventually(t, patience, "somebody listens", func() bool {
		return p.srv.Admin().PubSubNumSub(t.Context(), "redisson_lock__channel:{a}").Val()["redisson_lock__channel:{a}"] == 1
	})
	held := p.books()
	for range 4 * 16 { // an open release follows 16 grants, by either of them
		mustUnlock(t, held)
		open := p.srv.Admin().Exists(t.Context(), p.name).Val() == 0
		lease := mustLock(t, p.lockOf(p.a))
		other := p.asks(p.b)
		mustUnlock(t, lease)
		held = p.granted(other)
		if open {
			return
		}
	}
	t.Error("no release was open")
}

// Nothing is booked where nobody waits, and nothing is expected.
func TestHabit_NobodyWaits(t *testing.T) {
	p := newBaton(t, never)
	mustUnlock(t, p.learns())
	p.free()
	p.still()
	redistest.Eventually(t, patience, "the inbox is left", func() bool { return p.a.Stats().Subscriptions == 0 })
}

// Three processes that want the lock all the time meet each other, not themselves.
func TestHabit_Alone(t *testing.T) {
	srv := redistest.Start(t)
	var locks []holdfast.Locker
	for range 3 {
		locks = append(locks, managerOn(t, srv, holdfast.Comebacks(1, 20*time.Millisecond)).Mutex("a"))
	}
	alone(t, 300, locks...)

	if n := srv.CommandCalls("evalsha", "eval"); n > 3*300*7/4 {
		t.Errorf("%d requests for 900 acquisitions: nothing was booked", n)
	}
}

// Who comes back at once for a lock that has stayed away for a while leaves the next owner
// the time to be told of it, and asks then.
func TestHabit_StepsAside(t *testing.T) {
	for name, aside := range map[string]time.Duration{"the time is over": 10 * time.Millisecond, "somebody asks": never} {
		t.Run(name, func(t *testing.T) {
			p := newBaton(t, never)
			a := managerOn(t, p.srv, holdfast.Comebacks(1000, never), holdfast.StepAside(aside))
			defer p.hears(a)()
			lease := mustLock(t, p.lockOf(a))
			other := p.asks(p.b)
			mustUnlock(t, lease)
			held := p.granted(other)
			back := p.asks(a)                // at once: for how long it stays away is not known
			time.Sleep(2 * time.Millisecond) // work under the lock
			mustUnlock(t, held)
			lease = p.granted(back)

			other = p.asks(p.b)
			mustUnlock(t, lease)
			got := p.lockOf(a).LockAsync(t.Context())
			mustUnlock(t, p.granted(other))
			if aside == never {
				p.free() // it does not stand in the queue, or the lock were its own
				_, err := p.lockOf(a).TryLock(t.Context())
				wantErr(t, err, holdfast.ErrNotAcquired, nil) // the lock goes to who came before
			}
			mustUnlock(t, p.granted(got))
		})
	}
}

// The place is booked behind another caller of the same process, who waits for the fair lock
// of that name: it is not forgotten.
func TestHabit_BehindAnotherOfTheProcess(t *testing.T) {
	p := newBaton(t, soon)
	lease := p.learns()
	fair := p.a.FairMutex(p.name).LockAsync(t.Context())
	redistest.Eventually(t, patience, "it stands in the queue", func() bool { return len(p.queued()) == 1 })
	mustUnlock(t, lease)
	held := p.granted(fair)
	redistest.Eventually(t, patience, "the place is given up", func() bool { return len(p.queued()) == 0 })
	mustUnlock(t, held)
	p.free()
}

// Somebody who asks once does not wait because a place was booked for somebody else.
func TestHabit_TryLockBehindABooking(t *testing.T) {
	p := newBaton(t, never)
	held, answer := p.unanswered()
	waiting := p.a.Stats().Waiting
	got := p.lockOf(p.a).LockAsync(t.Context())
	tried := make(chan error, 1)
	go func() {
		_, err := p.lockOf(p.a).TryLock(context.Background())
		tried <- err
	}()
	redistest.Eventually(t, patience, "both wait", func() bool { return p.a.Stats().Waiting == waiting+2 })
	if err := answer(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-tried:
		wantErr(t, err, holdfast.ErrNotAcquired, nil)
	case <-time.After(patience):
		t.Error("TryLock waits")
	}
	mustUnlock(t, held)
	mustUnlock(t, p.granted(got))
}
