package renewal

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/validity"
)

// log records what a scheduler asks for, with the time since the start of the test.
type log struct {
	mu      sync.Mutex // guards the following
	start   time.Time
	renewed []event
	expired []event
}

type event struct {
	at    time.Duration
	items []string
}

// Len returns how many items are scheduled.
func (s *Scheduler[T]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.schedule.Len()
}

func (l *log) renew(batch []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = append(l.renewed, event{time.Since(l.start), slices.Clone(batch)})
}

func (l *log) expire(v string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expired = append(l.expired, event{time.Since(l.start), []string{v}})
}

// since returns the renewals from the n-th on.
func (l *log) since(n int) []event {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.renewed[n:])
}

func run(t *testing.T, f func(t *testing.T, s *Scheduler[string], l *log)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &log{start: time.Now()}
		s := New(l.renew, l.expire)
		f(t, s, l)
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

const ttl = 30 * time.Second

func TestConfirm_NeverMovesADeadlineBack(t *testing.T) {
	run(t, func(t *testing.T, s *Scheduler[string], l *log) {
		it := &Item[string]{Value: "a"}
		start := time.Now()
		s.Change(it, Plan{Fixed, start, ttl, ttl})
		time.Sleep(time.Second)
		later := s.Change(it, Plan{Confirm, time.Now(), ttl, ttl})
		s.Change(it, Plan{Confirm, start.Add(500 * time.Millisecond), ttl, ttl}) // the answer to an earlier request
		time.Sleep(2 * ttl)
		synctest.Wait()
		if want := later.Sub(start); len(l.expired) != 1 || l.expired[0].at != want {
			t.Errorf("expired %v, want once at %v", l.expired, want)
		}
	})
}

func TestDrop_EndsRenewalAndExpiry(t *testing.T) {
	run(t, func(t *testing.T, s *Scheduler[string], l *log) {
		it := &Item[string]{Value: "a"}
		s.Change(it, Plan{Renew, time.Now(), ttl, ttl})
		s.Change(it, Plan{What: Drop})
		s.Change(it, Plan{What: Drop})
		if deadline := s.Change(it, Plan{Confirm, time.Now(), ttl, ttl}); !deadline.IsZero() {
			t.Error("Confirm after Drop gives a deadline")
		}
		s.Change(it, Plan{What: Retry})
		time.Sleep(2 * ttl)
		synctest.Wait()
		if len(l.renewed)+len(l.expired) != 0 {
			t.Errorf("renewals %v, expired %v", l.renewed, l.expired)
		}
	})
}

func TestFixedLease_OnlyExpires(t *testing.T) {
	run(t, func(t *testing.T, s *Scheduler[string], l *log) {
		it := &Item[string]{Value: "a"}
		s.Change(it, Plan{Fixed, time.Now(), ttl, ttl})
		time.Sleep(20 * time.Second)
		if s.Change(it, Plan{Confirm, time.Now(), time.Minute, time.Minute}).IsZero() { // Extend
			t.Fatal("not scheduled")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		want := 20*time.Second + time.Minute - validity.Margin(time.Minute)
		if len(l.renewed) != 0 || len(l.expired) != 1 || l.expired[0].at != want {
			t.Errorf("renewals %v, expired %v, want once at %v", l.renewed, l.expired, want)
		}
	})
}

// Extend by less than the TTL, again and again or of a hold that was granted for less: the
// renewal comes when it would have come.
func TestConfirm_OfLessDoesNotPutTheRenewalOff(t *testing.T) {
	for name, tc := range map[string]struct{ first, due time.Duration }{
		"of its own TTL": {ttl, ttl / 3},
		"of a claim":     {2 * time.Second, Soon},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, s *Scheduler[string], l *log) {
				it := &Item[string]{Value: "a"}
				s.Change(it, Plan{Renew, time.Now(), tc.first, ttl})
				for time.Since(l.start) < ttl && len(l.since(0)) == 0 {
					s.Change(it, Plan{Confirm, time.Now(), 3 * time.Second, ttl}) // Extend
					time.Sleep(10 * time.Millisecond)
				}
				if got := l.since(0); len(got) != 1 || got[0].at > tc.due {
					t.Errorf("renewals %v, want one by %v", got, tc.due)
				}
			})
		})
	}
}

// A renewal that was under way when its item was given an end fails: it is not repeated.
func TestEnd_EndsRetries(t *testing.T) {
	run(t, func(t *testing.T, s *Scheduler[string], l *log) {
		it := &Item[string]{Value: "a"}
		s.Change(it, Plan{Renew, time.Now(), ttl, ttl})
		time.Sleep(ttl / 3)
		if got := l.since(0); len(got) != 1 {
			t.Fatalf("renewals %v, want one", got)
		}
		s.Change(it, Plan{What: End, At: time.Now().Add(ttl / 2)})
		s.Change(it, Plan{What: Retry})
		time.Sleep(ttl)
		if got := l.since(1); len(got) > 0 || s.Len() > 0 {
			t.Errorf("renewed again, %v, or %d items left", got, s.Len())
		}
	})
}

func TestStop_BeforeAnythingAndTwice(t *testing.T) {
	s := New[string](nil, nil)
	_ = s.Stop(t.Context())
	_ = s.Stop(t.Context())
	s.Change(&Item[string]{}, Plan{Renew, time.Now(), ttl, ttl})
	if s.started {
		t.Error("a stopped scheduler has started")
	}
}

// An item is scheduled once, as it was added last.
func TestScheduler_AddAgain(t *testing.T) {
	run(t, func(t *testing.T, s *Scheduler[string], l *log) {
		a := &Item[string]{Value: "a"}
		s.Change(a, Plan{Fixed, time.Now(), ttl, ttl})
		s.Change(a, Plan{Renew, time.Now(), ttl, ttl})
		if n := s.Len(); n != 1 {
			t.Errorf("scheduled %d times", n)
		}
		time.Sleep(ttl/3 + time.Second/2)
		if got := l.since(0); len(got) != 1 {
			t.Errorf("renewals %v", got)
		}
		s.Change(a, Plan{What: Drop})
		if s.Has(a) || s.Len() != 0 {
			t.Error("it is still scheduled")
		}
	})
}

// A hold is renewed before its deadline, and there is room for two retries.
func TestPeriod_IsBeforeTheDeadline(t *testing.T) {
	sent := time.Now()
	for ttl := validity.MinTTL; ttl <= validity.MaxTTL; ttl = ttl*3/2 + 1 {
		renew, deadline := period(ttl), validity.Deadline(sent, ttl).Sub(sent)
		if renew <= 0 || renew >= deadline {
			t.Fatalf("ttl %v: renew +%v, deadline +%v", ttl, renew, deadline)
		}
		if ttl > 100*time.Millisecond && renew+2*retryAfter(ttl) > deadline {
			t.Fatalf("ttl %v: no room for two retries of %v", ttl, retryAfter(ttl))
		}
	}
}
