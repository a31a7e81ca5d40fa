package holdfast_test

import (
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// One acquire and one release of the whole, with those of the members below them; a dead
// member that is asked again and again while the lock is held adds nothing.
func TestRedlock_SpansAndMetrics(t *testing.T) {
	t.Parallel()
	all := servers(t, 3)
	recorder, reader := tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
	c := all.candidate(t,
		holdfast.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))),
		holdfast.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
	lease := mustLock(t, c)
	all.heldBy(t, 3)
	all.joined(t, lease)
	mustUnlock(t, lease)
	all.heldBy(t, 0)
	redistest.Eventually(t, patience, "four spans of each", func() bool { return len(recorder.Ended()) == 8 })
	wantFamily(t, recorder.Ended(), "redlock", vote, 3)
	if got := durations(t, reader, "redlock"); got["holdfast.acquire.duration acquired"] != 1 || got["holdfast.release.duration released"] != 1 {
		t.Errorf("metrics of the whole: %v", got)
	}
	if got := durations(t, reader, "mutex"); len(got) != 0 {
		t.Errorf("metrics of the members, which nobody has asked for: %v", got)
	}

	recorder.Reset()
	all[0].Kill()
	lease = mustLock(t, c)
	troubles := c.managers[0].Stats().Troubles
	redistest.Eventually(t, patience, "the dead one is asked again", func() bool { return c.managers[0].Stats().Troubles >= troubles+2 })
	acquires := 0
	for _, s := range recorder.Ended() {
		if s.Name() == "lock.acquire" {
			acquires++
		}
	}
	if acquires != 4 {
		t.Errorf("%d spans of acquires for a lock of three members", acquires)
	}
	mustUnlock(t, lease)
	other := all.candidate(t)
	held := mustLock(t, other)
	_, err := c.TryLock(t.Context())
	wantErr(t, err, holdfast.ErrNotAcquired, nil)
	if got := durations(t, reader, "redlock"); got["holdfast.acquire.duration acquired"] != 2 || got["holdfast.acquire.duration not_acquired"] != 1 {
		t.Errorf("metrics of the whole: %v", got)
	}
	mustUnlock(t, held)
}

// durations counts what the histograms have of one type of lock, by name and outcome.
func durations(t *testing.T, reader sdkmetric.Reader, kind string) map[string]uint64 {
	t.Helper()
	var data metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
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
