package telemetry

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func attributes(s sdktrace.ReadOnlySpan) map[attribute.Key]attribute.Value {
	all := map[attribute.Key]attribute.Value{}
	for _, kv := range s.Attributes() {
		all[kv.Key] = kv.Value
	}
	return all
}

// recorded returns the spans of a manager with the option.
func recorded() (*tracetest.SpanRecorder, holdfast.Option) {
	recorder := tracetest.NewSpanRecorder()
	return recorder, holdfast.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)))
}

func TestTelemetry_SpanPerAcquireAndRelease(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	srv := redistest.Start(t)
	m, err := holdfast.New(srv.Client(t), holdfast.WithTracerProvider(provider))
	redistest.Must(t, err)
	ctx, parent := provider.Tracer("test").Start(context.Background(), "request")
	l := m.Mutex("order:42", holdfast.WithFencing())
	lease := locktest.Got(t, l.Lock, ctx)
	owners, err := srv.Admin().HKeys(ctx, "order:42").Result()
	if err != nil || len(owners) != 1 {
		t.Fatal(owners, err)
	}
	if _, err := l.TryLock(ctx); !errors.Is(err, holdfast.ErrNotAcquired) {
		t.Fatal(err)
	}
	inner := locktest.Got(t, l.Lock, lease.Context(ctx))
	inner.Unlock(ctx)
	lease.Unlock(ctx)
	srv.Admin().Set(ctx, "order:43", "x", 0)
	_, _ = m.Mutex("order:43").Lock(ctx) // ErrWrongKind
	parent.End()
	redistest.Must(t, m.Close(ctx))

	type want struct {
		name, outcome, mode string
		status              codes.Code
	}
	var got []want
	for _, s := range recorder.Ended() {
		if s.Name() == "request" {
			continue
		}
		a := attributes(s)
		got = append(got, want{s.Name(), a["holdfast.outcome"].AsString(), a["holdfast.wait_mode"].AsString(), s.Status().Code})
		if s.Parent().SpanID() != parent.SpanContext().SpanID() {
			t.Errorf("%s is not a child of the caller's span", s.Name())
		}
		if s.SpanKind() != trace.SpanKindInternal {
			t.Errorf("%s has kind %v", s.Name(), s.SpanKind())
		}
		if strings.Contains(s.Name(), "order") {
			t.Errorf("the lock's name is in the span's name %q", s.Name())
		}
		if n := a["holdfast.name"].AsString(); n != "order:42" && n != "order:43" {
			t.Errorf("holdfast.name = %q", n)
		}
		for k, v := range a {
			if strings.Contains(v.String(), owners[0]) || strings.Contains(v.String(), "hf-") {
				t.Errorf("an owner id is in attribute %s", k)
			}
		}
	}
	wants := []want{
		{"lock.acquire", "acquired", "fast", codes.Unset},
		{"lock.acquire", "not_acquired", "", codes.Unset},
		{"lock.acquire", "acquired", "reentry", codes.Unset},
		{"lock.release", "released", "", codes.Unset},
		{"lock.release", "released", "", codes.Unset},
		{"lock.acquire", "error", "", codes.Error},
	}
	if len(got) != len(wants) {
		t.Fatalf("spans %v", got)
	}
	for i := range wants {
		if got[i] != wants[i] {
			t.Errorf("span %d: %v, want %v", i, got[i], wants[i])
		}
	}
}

// What a span says about how a lease came about.
func TestTelemetry_WaitModes(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		recorder, spans := recorded()
		srv := redistest.Start(t)
		other := locktest.ManagerOn(t, srv)
		m := locktest.ManagerOn(t, srv, spans)
		reader := m.RWMutex("readers", holdfast.WithFixedLease(time.Minute)).RLocker() // each has a hold of its own
		locktest.MustUnlock(t, locktest.MustLock(t, reader))
		first := locktest.MustLock(t, reader)
		second := locktest.MustLock(t, reader)

		held := locktest.MustLock(t, m.Mutex("passed"))
		got := locktest.Waits(t, m.Mutex("passed"))
		redistest.Eventually(t, locktest.Patience, "it waits", func() bool { return m.Stats().Waiting == 1 })
		locktest.MustUnlock(t, held)
		passed := got()

		for m.Stats().Granted == 0 { // or a request that was under way found the grant
			theirs := locktest.MustLock(t, other.Mutex("granted"))
			got = locktest.Waits(t, m.Mutex("granted"))
			locktest.Queued(t, srv, "redisson_lock_queue:{granted}", 1)
			locktest.MustUnlock(t, theirs)
			locktest.MustUnlock(t, got())
		}

		srv.Admin().HSet(t.Context(), "polled", "5c6a0a3c-0f5e-4a37-9f1f-0d8f9c6b1a11:63", 1)
		srv.Admin().PExpire(t.Context(), "polled", time.Second)
		polled := locktest.MustLock(t, m.Mutex("polled"))
		locktest.MustUnlock(t, first, second, passed, polled)

		modes := map[string]string{}
		for _, s := range recorder.Ended() {
			if a := attributes(s); s.Name() == "lock.acquire" {
				name := a["holdfast.name"].AsString()
				if name == "granted" {
					modes[name] = "" // the last one counts
				}
				modes[name] += a["holdfast.wait_mode"].AsString() + " "
			}
		}
		want := map[string]string{"readers": "fast fast fast ", "passed": "fast handoff ", "granted": "grant ", "polled": "wait "}
		if !maps.Equal(modes, want) {
			t.Errorf("%v, want %v", modes, want)
		}
	})
}

func TestTelemetry_Metrics(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		reader := sdkmetric.NewManualReader()
		provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
		srv := redistest.Start(t)
		m, err := holdfast.New(srv.Client(t), holdfast.WithMeterProvider(provider), holdfast.WithLease(3*time.Second))
		redistest.Must(t, err)
		ctx := context.Background()
		lease := locktest.Got(t, m.Mutex("a").Lock, ctx)
		redistest.Eventually(t, locktest.Patience, "a renewal", func() bool { return m.Stats().Renewals > 0 })
		lost := locktest.Got(t, m.Mutex("b").Lock, ctx)
		srv.Admin().Del(ctx, "b")
		<-lost.Done()
		redistest.Eventually(t, locktest.Patience, "the loss is counted", func() bool { return m.Stats().Lost > 0 }) // just after Done is closed
		for name, want := range map[string]int64{"held": 1, "lost": 1, "acquire.duration": 2} {
			redistest.Want(t, sum(t, reader, "holdfast."+name), want, "%d "+name+", want %d")
		}
		if n := sum(t, reader, "holdfast.renewals"); n < 1 {
			t.Errorf("%d renewals", n)
		}
		lease.Unlock(ctx)
		redistest.Want(t, sum(t, reader, "holdfast.held"), 0, "%d held after Unlock")
		redistest.Want(t, sum(t, reader, "holdfast.release.duration"), 1, "%d releases")
		redistest.Must(t, m.Close(ctx))
		wantSeries(t, reader, "holdfast.held", map[string]float64{}) // the provider outlives the manager, and would keep it
	})
}

// What a call says is its own fact, and not that of another lock, which ended its context.
func TestTelemetry_OutcomeIsNotTheCauses(t *testing.T) {
	t.Parallel()
	recorder, spans := recorded()
	srv := redistest.Start(t)
	m := locktest.ManagerOn(t, srv, spans)
	first := locktest.MustLock(t, m.Mutex("first", holdfast.WithFixedLease(3*time.Second)))
	_, busy := locktest.ManagerOn(t, srv).Mutex("first").TryLock(t.Context())
	cancelled, cancel := context.WithCancelCause(t.Context())
	srv.Kill()
	go func() {
		for m.Stats().Troubles == 0 && t.Context().Err() == nil { // or the lock is not known to be in trouble
			time.Sleep(time.Millisecond)
		}
		cancel(busy)
	}()
	for _, ctx := range []context.Context{cancelled, first.Context(t.Context())} { // in this order
		recorder.Reset()
		_, err := m.Mutex("second").Lock(ctx)
		locktest.WantErr(t, err, holdfast.ErrUnavailable, nil)
		a := attributes(recorder.Ended()[0])
		if a["holdfast.outcome"].AsString() != "error" || a["error.type"].AsString() != "unavailable" {
			t.Errorf("%v: %v", err, a)
		}
	}
}

// fn may unlock by itself: there is one release, and no error.
func TestTelemetry_DoWhoseFunctionUnlocks(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		recorder, spans := recorded()
		m := locktest.ManagerOn(t, redistest.Start(t), spans)
		err := holdfast.Do(t.Context(), m.Mutex("a"), func(ctx context.Context, l *holdfast.Lease) error { return l.Unlock(ctx) })
		redistest.Must(t, err)
		ended := recorder.Ended()
		if len(ended) != 2 || ended[1].Name() != "lock.release" || ended[1].Status().Code != codes.Unset {
			t.Errorf("%d spans: %v", len(ended), ended)
		}
	})
}

// Exporters refuse what is not UTF-8; a lock's name may be any bytes.
func TestTelemetry_NameOfAnyBytes(t *testing.T) {
	t.Parallel()
	recorder, spans := recorded()
	srv := redistest.Start(t)
	m := locktest.ManagerOn(t, srv, spans)
	locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex("user:\xff\xfe:é")))
	srv.Kill()
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		redistest.Eventually(t, locktest.Patience, "it asks in vain", func() bool { return m.Stats().Troubles > 0 })
		cancel(errors.New("it said \xff"))
	}()
	_, err := m.Mutex("user:\xff\xfe:é").Lock(ctx)
	locktest.WantErr(t, err, holdfast.ErrUnavailable, nil)
	ended := recorder.Ended()
	for _, s := range ended {
		if n := attributes(s)["holdfast.name"].AsString(); n != "user:\uFFFD:é" {
			t.Errorf("%s of %q", s.Name(), n)
		}
	}
	if last := ended[len(ended)-1].Status().Description; !strings.Contains(last, "it said \uFFFD") {
		t.Errorf("the status is %q", last)
	}
	redistest.Want(t, len(ended), 3, "%d spans")
}

// Connections lost is a sum over the managers of a program, and does not fall when one of them is
// closed; nor does it grow while none can be made.
func TestTelemetry_ConnectionsLost(t *testing.T) {
	t.Parallel()
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	for n := int64(1); n <= 2; n++ {
		srv := redistest.Start(t)
		m := locktest.ManagerOn(t, srv, holdfast.WithMeterProvider(provider))
		locktest.MustLock(t, locktest.ManagerOn(t, srv).Mutex("a"))
		_ = locktest.Waits(t, m.Mutex("a"))
		locktest.InboxHeard(t, srv)
		srv.Kill()
		redistest.Eventually(t, locktest.Patience, "it asks in vain", func() bool { return m.Stats().Troubles > 3 })
		if lost := sum(t, reader, "holdfast.pubsub.reconnects"); lost != n || m.Stats().Reconnects != 1 {
			t.Errorf("manager %d: %d of all, %d of its own", n, lost, m.Stats().Reconnects)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Log(err)
		}
	}
}

// sum adds up a metric over its attributes; a histogram counts.
func sum(t *testing.T, reader sdkmetric.Reader, name string) (n int64) {
	t.Helper()
	for _, value := range series(t, reader, name) {
		n += int64(value)
	}
	return n
}
