package telemetry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/locktest/several"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// series are the values of one metric, a histogram's counts, by the values of its attributes in the order of their keys.
func series(t *testing.T, reader sdkmetric.Reader, name string) map[string]float64 {
	t.Helper()
	var data metricdata.ResourceMetrics
	redistest.Must(t, reader.Collect(context.Background(), &data))
	all := make(map[string]float64)
	add := func(set attribute.Set, value float64) {
		var words []string
		for _, kv := range set.ToSlice() {
			words = append(words, kv.Value.AsString())
		}
		all[strings.Join(words, " ")] = value
	}
	for _, scope := range data.ScopeMetrics {
		for _, metric := range scope.Metrics {
			if metric.Name != name {
				continue
			}
			switch d := metric.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					add(p.Attributes, float64(p.Value))
				}
			case metricdata.Gauge[float64]:
				for _, p := range d.DataPoints {
					add(p.Attributes, p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					add(p.Attributes, float64(p.Count))
				}
			}
		}
	}
	return all
}

func wantSeries(t *testing.T, reader sdkmetric.Reader, name string, want map[string]float64) {
	t.Helper()
	if got := series(t, reader, name); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", name, got, want)
	}
}

func metered() (sdkmetric.Reader, holdfast.Option) {
	reader := sdkmetric.NewManualReader()
	return reader, holdfast.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
}

// Each end of a lease is measured once, by its outcome; a re-entry and the parts of several locks are not.
func TestMetrics_HoldDuration(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		reader, metrics := metered()
		m := locktest.ManagerOn(t, srv, metrics, holdfast.WithLease(time.Second))
		outer := locktest.MustLock(t, m.Mutex("a"))
		inner := locktest.Got(t, m.Mutex("a").Lock, outer.Context(t.Context()))
		locktest.MustUnlock(t, inner, outer)
		_ = outer.Unlock(t.Context()) // ErrNotHeld
		locktest.MustUnlock(t, locktest.MustLock(t, several.Multi(t, m.Mutex("b"), m.RWMutex("c"))))
		lost := locktest.MustLock(t, m.FairMutex("d"))
		srv.Admin().Del(t.Context(), "d")
		<-lost.Done()
		most := locktest.MustLock(t, m.RWMutex("e", holdfast.WithMaxHold(time.Second)).RLocker())
		<-most.Done()
		redistest.Eventually(t, locktest.Patience, "it is measured, just after that", func() bool { return series(t, reader, "holdfast.hold.duration")["max_hold read"] > 0 })
		locktest.MustLock(t, m.Mutex("f"))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := m.Mutex("g").Lock(ended); err == nil { // never held
			t.Error("locked under a context that has ended")
		}
		redistest.Check(t, m.Close(context.Background()))
		wantSeries(t, reader, "holdfast.hold.duration", map[string]float64{
			"released mutex": 1, "released multi": 1, "lost fair": 1, "max_hold read": 1, "closed mutex": 1,
		})
	})
}

// Leases by how they came about, in acquire.duration and in grants, which has LockAsync and re-entry as well. A manager that
// is closed does not take its counts along.
func TestMetrics_WaitModes(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		reader, metrics := metered()
		m, other := locktest.ManagerOn(t, srv, metrics), locktest.ManagerOn(t, srv, metrics)
		first := locktest.MustLock(t, m.Mutex("a"))
		inner := locktest.Got(t, m.Mutex("a").Lock, first.Context(t.Context()))
		locktest.MustUnlock(t, inner)
		second := m.Mutex("a").LockAsync(t.Context())
		locktest.MustUnlock(t, first)
		held := locktest.Granted(t, second)
		last := locktest.Waits(t, other.Mutex("a"))
		redistest.Eventually(t, locktest.Patience, "it waits", func() bool { return other.Stats().Subscriptions > 0 })
		locktest.MustUnlock(t, held)
		locktest.MustUnlock(t, last())
		redistest.Check(t, other.Close(context.Background()))
		grants := series(t, reader, "holdfast.grants")
		remote := grants["mutex grant"] + grants["mutex wait"] // a message that is late is confirmed
		if remote != 1 || grants["mutex fast"] != 1 || grants["mutex reentry"] != 1 || grants["mutex handoff"] != 1 || len(grants) != 4 {
			t.Errorf("%v", grants)
		}
		times := series(t, reader, "holdfast.acquire.duration")
		if times["acquired mutex fast"] != 1 || times["acquired mutex reentry"] != 1 || times["acquired mutex handoff"] != 0 {
			t.Errorf("%v", times)
		}
		if n := series(t, reader, "holdfast.grants"); fmt.Sprint(n) != fmt.Sprint(grants) {
			t.Errorf("collected again: %v, before %v", n, grants)
		}
	})
}

// A renewal leaves about two thirds of the lease; the first one after a grant by another process's release is not taken for
// a late one.
func TestMetrics_RenewalSlack(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		reader, metrics := metered()
		lasts := holdfast.WithLease(10 * time.Second) // a third of it is the longest time to the first renewal
		m, other := locktest.ManagerOn(t, srv, metrics, lasts), locktest.ManagerOn(t, srv, lasts)
		held := locktest.MustLock(t, other.Mutex("a"))
		next := locktest.Waits(t, m.Mutex("a"))
		redistest.Eventually(t, locktest.Patience, "it waits", func() bool { return m.Stats().Subscriptions > 0 })
		locktest.MustUnlock(t, held)
		lease := next()
		redistest.Eventually(t, locktest.Patience, "a renewal", func() bool { return m.Stats().Renewals > 0 })
		locktest.MustUnlock(t, lease)
		p := slack(t, reader)
		if least, _ := p.Min.Value(); p.Count < 1 || least < .2 {
			t.Errorf("%d renewals, the least left %v", p.Count, least)
		}
	})
}

// slack returns what was measured of renewals so far.
func slack(t *testing.T, reader sdkmetric.Reader) (p metricdata.HistogramDataPoint[float64]) {
	t.Helper()
	var data metricdata.ResourceMetrics
	redistest.Must(t, reader.Collect(t.Context(), &data))
	for _, metric := range data.ScopeMetrics[0].Metrics {
		if metric.Name == "holdfast.renewal.slack" {
			p = metric.Data.(metricdata.Histogram[float64]).DataPoints[0]
		}
	}
	return p
}

// Only a grant by message has a shorter lease at first. A reader now and then counts as one that was granted so.
func TestMetrics_RenewalSlackOfReaders(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		reader, metrics := metered()
		m := locktest.ManagerOn(t, redistest.Start(t), metrics, holdfast.WithLease(6*time.Second))
		const readers = 100
		for i := range readers {
			lease := locktest.Got(t, m.RWMutex(fmt.Sprint(i)).RLock, t.Context())
			defer locktest.MustUnlock(t, lease)
		}
		redistest.Eventually(t, locktest.Patience, "renewals of all", func() bool { return slack(t, reader).Count >= readers })
		p := slack(t, reader)
		if most, _ := p.Max.Value(); most > .8 {
			t.Errorf("%d renewals, the most left %v", p.Count, most)
		}
	})
}

// The oldest of all managers counts, whichever reports last.
func TestMetrics_Oldest(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		reader, metrics := metered()
		of := holdfast.WithMetricName(func(name string) string { class, _, _ := strings.Cut(name, ":"); return class })
		first, second := locktest.ManagerOn(t, srv, metrics, of), locktest.ManagerOn(t, srv, metrics, of)
		wantSeries(t, reader, "holdfast.held.oldest", map[string]float64{})
		a := locktest.MustLock(t, first.Mutex("stock:1"))
		time.Sleep(time.Second)
		b := locktest.MustLock(t, second.Mutex("stock:2"))
		c := locktest.MustLock(t, second.Mutex("order:1"))
		w := second.Mutex("stock:1").LockAsync(t.Context())
		time.Sleep(time.Second)
		held, waiting := series(t, reader, "holdfast.held.oldest"), series(t, reader, "holdfast.waiting.oldest")
		if len(held) != 2 || held["stock"] < 2 || held["order"] < 1 || held["order"] >= held["stock"] {
			t.Errorf("held: %v", held)
		}
		if len(waiting) != 1 || waiting["stock"] < 1 || waiting["stock"] >= held["stock"] {
			t.Errorf("waiting: %v", waiting)
		}
		locktest.MustUnlock(t, a)
		locktest.MustUnlock(t, locktest.Granted(t, w))
		locktest.MustUnlock(t, b, c)
		wantSeries(t, reader, "holdfast.waiting.oldest", map[string]float64{})
	})
}

// However many classes there are, there are a hundred series, and the other.
func TestMetrics_Classes(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		reader, metrics := metered()
		m := locktest.ManagerOn(t, redistest.Start(t), metrics, holdfast.WithMetricName(func(name string) string { return strings.TrimPrefix(name, "none:") }),
			holdfast.WithNameMapper(func(name string) string { return "mapped:" + name }))
		for i := range 200 {
			locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex(fmt.Sprint(i))))
		}
		locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex("none:"))) // no class
		locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex("7")))
		grants := series(t, reader, "holdfast.grants")
		if len(grants) != 101 || grants["other mutex fast"] != 101 || grants["7 mutex fast"] != 2 {
			t.Errorf("%d classes, %v of other, %v of 7", len(grants), grants["other mutex fast"], grants["7 mutex fast"])
		}
		for _, name := range []string{"holdfast.acquire.duration", "holdfast.release.duration", "holdfast.hold.duration"} {
			if got := series(t, reader, name); len(got) != 101 {
				t.Errorf("%s has %d classes", name, len(got))
			}
		}
	})
}

// What is counted inside the library reaches the counters.
func TestMetrics_PollsAndTroubles(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		reader, metrics := metered()
		proxy := srv.Proxy(t)
		m, err := holdfast.New(proxy.Client(t), metrics, holdfast.WithPollInterval(10*time.Millisecond))
		redistest.Must(t, err)
		held := locktest.MustLock(t, locktest.ManagerOn(t, srv).Mutex("a"))
		next := m.Mutex("a").LockAsync(t.Context())
		redistest.Eventually(t, locktest.Patience, "a poll", func() bool { return m.Stats().Polls > 0 })
		proxy.Refuse(true)
		proxy.Cut()
		redistest.Eventually(t, locktest.Patience, "trouble", func() bool { return m.Stats().Troubles > 0 })
		proxy.Heal()
		locktest.MustUnlock(t, held)
		locktest.MustUnlock(t, locktest.Granted(t, next))
		if err := m.Close(context.Background()); err != nil && !errors.Is(err, holdfast.ErrUnavailable) {
			t.Error(err)
		}
		for name, want := range map[string]uint64{"holdfast.polls": m.Stats().Polls, "holdfast.troubles": m.Stats().Troubles} {
			if got := series(t, reader, name)[""]; got != float64(want) {
				t.Errorf("%s: %v, and Stats has %d", name, got, want)
			}
		}
	})
}
