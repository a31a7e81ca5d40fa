package several

import (
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// The spans of the members are children of the span of the whole.
func TestMulti_Spans(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		recorder := tracetest.NewSpanRecorder()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
		m := locktest.ManagerOn(t, redistest.Start(t), holdfast.WithTracerProvider(provider))
		locktest.MustUnlock(t, locktest.MustLock(t, Multi(t, m.Mutex("a"), m.RWMutex("b"))))
		wantFamily(t, recorder.Ended(), "multi", "a+b", 2)
	})
}

// One acquire and one release of the whole, with those of the members below them; a dead
// member that is asked again and again while the lock is held adds nothing.
func TestRedlock_SpansAndMetrics(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := Servers(t, 3)
		recorder, reader := tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
		c := all.Candidate(t,
			holdfast.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))),
			holdfast.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
		lease := locktest.MustLock(t, c)
		all.heldBy(t, 3)
		all.joined(t, lease)
		locktest.MustUnlock(t, lease)
		all.heldBy(t, 0)
		redistest.Eventually(t, locktest.Patience, "four spans of each", func() bool { return len(recorder.Ended()) == 8 })
		wantFamily(t, recorder.Ended(), "redlock", Vote, 3)
		if got := durations(t, reader, "redlock"); got["holdfast.acquire.duration acquired"] != 1 || got["holdfast.release.duration released"] != 1 {
			t.Errorf("metrics of the whole: %v", got)
		}
		if got := durations(t, reader, "mutex"); len(got) != 0 {
			t.Errorf("metrics of the members, which nobody has asked for: %v", got)
		}

		recorder.Reset()
		all[0].Kill()
		lease = locktest.MustLock(t, c)
		troubles := c.Managers[0].Stats().Troubles
		redistest.Eventually(t, locktest.Patience, "the dead one is asked again", func() bool { return c.Managers[0].Stats().Troubles >= troubles+2 })
		acquires := 0
		for _, s := range recorder.Ended() {
			if s.Name() == "lock.acquire" {
				acquires++
			}
		}
		redistest.Want(t, acquires, 4, "%d spans of acquires for a lock of three members")
		locktest.MustUnlock(t, lease)
		other := all.Candidate(t)
		held := locktest.MustLock(t, other)
		_, err := c.TryLock(t.Context())
		locktest.WantErr(t, err, holdfast.ErrNotAcquired, nil)
		if got := durations(t, reader, "redlock"); got["holdfast.acquire.duration acquired"] != 2 || got["holdfast.acquire.duration not_acquired"] != 1 {
			t.Errorf("metrics of the whole: %v", got)
		}
		locktest.MustUnlock(t, held)
	})
}

// wantFamily fails unless there is one span of the whole for Lock and one for Unlock, and
// n children of each.
func wantFamily(t *testing.T, spans []sdktrace.ReadOnlySpan, kind, name string, n int) {
	t.Helper()
	parents := map[string]trace.SpanID{}
	for _, s := range spans {
		if a := attributes(s); a["holdfast.type"].AsString() == kind {
			if _, twice := parents[s.Name()]; twice || a["holdfast.name"].AsString() != name || s.Name() == "lock.acquire" && a["holdfast.wait_mode"].AsString() != "fast" {
				t.Errorf("%s: %v", s.Name(), s.Attributes())
			}
			parents[s.Name()] = s.SpanContext().SpanID()
		}
	}
	if len(parents) != 2 {
		t.Fatalf("spans of the whole: %v", parents)
	}
	children := map[string]int{}
	for _, s := range spans {
		if attributes(s)["holdfast.type"].AsString() == kind {
			continue
		}
		children[s.Name()]++
		if s.Parent().SpanID() != parents[s.Name()] {
			t.Errorf("%s of %s is not a child of the whole", s.Name(), attributes(s)["holdfast.name"].AsString())
		}
	}
	if children["lock.acquire"] != n || children["lock.release"] != n {
		t.Errorf("%v children, want %d each", children, n)
	}
}

// durations counts what the histograms have of one type of lock, by name and outcome.
func durations(t *testing.T, reader sdkmetric.Reader, kind string) map[string]uint64 {
	t.Helper()
	var data metricdata.ResourceMetrics
	redistest.Must(t, reader.Collect(t.Context(), &data))
	counts := map[string]uint64{}
	for _, scope := range data.ScopeMetrics {
		for _, metric := range scope.Metrics {
			h, ok := metric.Data.(metricdata.Histogram[float64])
			if !ok {
				continue
			}
			for _, p := range h.DataPoints {
				if of, _ := p.Attributes.Value("holdfast.type"); of.AsString() == kind {
					outcome, _ := p.Attributes.Value("holdfast.outcome")
					counts[metric.Name+" "+outcome.AsString()] += p.Count
				}
			}
		}
	}
	return counts
}

func attributes(s sdktrace.ReadOnlySpan) map[attribute.Key]attribute.Value {
	all := map[attribute.Key]attribute.Value{}
	for _, kv := range s.Attributes() {
		all[kv.Key] = kv.Value
	}
	return all
}
