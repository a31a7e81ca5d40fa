package holdfast_test

import (
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// The spans of the members are children of the span of the whole.
func TestMulti_Spans(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	m := managerOn(t, redistest.Start(t), holdfast.WithTracerProvider(provider))
	mustUnlock(t, mustLock(t, multi(t, m.Mutex("a"), m.RWMutex("b"))))
	wantFamily(t, recorder.Ended(), "multi", "a+b", 2)
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
