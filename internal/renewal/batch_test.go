package renewal

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/validity"
)

// Holds taken at any time share batches: ten thousand of them, taken evenly over a
// period, cost some tens of batches per period, and each is renewed once.
func TestRenewal_IsBatched(t *testing.T) {
	run(t, func(t *testing.T, s *Scheduler[string], l *log) {
		const n = 10_000
		items := make([]Item[string], n)
		for i := range items {
			items[i].Value = fmt.Sprint(i)
			s.Change(&items[i], Plan{Renew, time.Now(), ttl, ttl})
			time.Sleep(ttl / 3 / n)
		}
		from, total, batches := len(l.since(0)), 0, 0
		for time.Since(l.start) < 2*ttl/3 {
			time.Sleep(100 * time.Millisecond)
			for _, e := range l.since(from) {
				from++
				batches++
				total += len(e.items)
				for _, v := range e.items {
					var i int
					fmt.Sscan(v, &i)
					s.Change(&items[i], Plan{Confirm, time.Now(), ttl, ttl})
				}
			}
		}
		if total < n*9/10 || total > n*14/10 { // up to a quarter too early
			t.Errorf("%d renewals of %d holds in a period", total, n)
		}
		if batches > 60 {
			t.Errorf("%d batches in a period", batches)
		}
		if s.Len() != n {
			t.Errorf("%d expired", n-s.Len())
		}
		t.Logf("%d holds: %d batches of %d on average", n, batches, total/max(1, batches))
	})
}

// A hold that is renewed all the time does not cut short the pauses of another one, whose renewal fails or has no answer.
func TestScheduler_PausesAreNotCutShort(t *testing.T) {
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			const short = 60 * time.Millisecond
			items := map[string]*Item[string]{"long": {Value: "long"}, "short": {Value: "short"}}
			var s *Scheduler[string]
			s = New(func(batch []string) {
				for _, v := range batch {
					switch {
					case v == "short":
						s.Change(items[v], Plan{Confirm, time.Now(), short, short})
						continue
					case fails:
						s.Change(items[v], Plan{What: Retry})
					}
					asked++
				}
			}, func(string) {})
			now := time.Now()
			s.Change(items["long"], Plan{Renew, now, 30 * time.Second, 30 * time.Second})
			s.Change(items["short"], Plan{Renew, now, short, short})
			time.Sleep(40 * time.Second)
			if err := s.Stop(t.Context()); err != nil {
				t.Error(err)
			}
			if asked < 15 || asked > 25 { // one a second in two thirds of its lease
				t.Errorf("fails %v: asked for %d times", fails, asked)
			}
		})
	}
}

// What is not renewed is not taken along with others near its end, and what fails there ends in time.
func TestScheduler_EndsAreKeptBesideRenewals(t *testing.T) {
	for _, renewed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const lease, short = 3 * time.Second, 60 * time.Millisecond
			var start, end = time.Now(), time.Time{}
			it, other := &Item[string]{Value: "a"}, &Item[string]{Value: "other"}
			var s *Scheduler[string]
			s = New(func(batch []string) {
				for _, v := range batch {
					switch {
					case v == "other":
						s.Change(other, Plan{Confirm, time.Now(), short, short})
					case renewed:
						s.Change(it, Plan{What: Retry})
					default:
						t.Error("renewed")
					}
				}
			}, func(string) { end = time.Now() })
			what := Fixed
			if renewed {
				what = Renew
			}
			s.Change(it, Plan{what, start, lease, lease})
			s.Change(other, Plan{Renew, start, short, short})
			time.Sleep(2 * lease)
			if err := s.Stop(t.Context()); err != nil {
				t.Error(err)
			}
			if got, want := end.Sub(start), lease-validity.Margin(lease); got != want {
				t.Errorf("renewed %v: it ends at %v, want %v", renewed, got, want)
			}
		})
	}
}
