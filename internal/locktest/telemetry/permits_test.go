package telemetry

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Permits are counted by class, over all managers; a semaphore is one lock, and its kind is an attribute.
func TestMetrics_Permits(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		reader, metrics := metered()
		of := holdfast.WithMetricName(func(name string) string { class, _, _ := strings.Cut(name, ":"); return class })
		first, second := locktest.ManagerOn(t, srv, metrics, of), locktest.ManagerOn(t, srv, metrics, of)
		wantSeries(t, reader, "holdfast.permits", map[string]float64{})
		a := locktest.MustLock(t, first.Semaphore("load:1", 9).Locker(3))
		b := locktest.MustLock(t, first.Semaphore("load:2", 9).Locker(1))
		c := locktest.MustLock(t, second.Semaphore("load:1", 9).Locker(5))
		d := locktest.MustLock(t, second.Semaphore("mail", 2).Locker(2))
		e := locktest.MustLock(t, first.Mutex("load:3"))
		wantSeries(t, reader, "holdfast.permits", map[string]float64{"load": 9, "mail": 2})
		locktest.MustUnlock(t, a, d)
		wantSeries(t, reader, "holdfast.permits", map[string]float64{"load": 6})
		locktest.MustUnlock(t, b, c, e)
		wantSeries(t, reader, "holdfast.permits", map[string]float64{})
		redistest.Want(t, series(t, reader, "holdfast.hold.duration")["load released semaphore"], 3, "%v leases of semaphores have ended, want 3")
	})
}

// A refusal that names another number of permits is told once for each name.
func TestLogs_OtherNumberOfPermits(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		log, option := locktest.Logged()
		m := locktest.ManagerOn(t, srv, option)
		const text = "WARN holdfast: semaphore has another number of permits in Redis than here"
		for _, name := range []string{"a", "b"} {
			all := locktest.MustLock(t, m.Semaphore(name, 3).Locker(3))
			for _, here := range []int{3, 10, 10} { // the same number is no news
				_, err := m.Semaphore(name, here).TryAcquire(t.Context(), 1)
				locktest.WantErr(t, err, holdfast.ErrNotAcquired, nil)
			}
			locktest.MustUnlock(t, all)
			redistest.Eventually(t, locktest.Patience, "it is told", func() bool { return len(log.With(text, "lock="+name, "permits=3", "here=10")) == 1 })
		}
		redistest.Want(t, len(log.With(text)), 2, "%d lines, want %d")
	})
}
