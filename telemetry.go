package holdfast

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// scope is the instrumentation scope of all spans and metrics.
const scope = "github.com/holdfast-go/holdfast"

// Attribute keys. There is no semantic convention for locks. The lock's name is an
// attribute of spans only, where it cannot multiply time series; owner ids appear
// nowhere, since an owner id is what a release is authorised by.
const (
	attrName     = attribute.Key("holdfast.name")
	attrType     = attribute.Key("holdfast.type")
	attrOutcome  = attribute.Key("holdfast.outcome")
	attrWaitMode = attribute.Key("holdfast.wait_mode")
	attrLease    = attribute.Key("holdfast.lease_ms")
	attrToken    = attribute.Key("holdfast.fencing_token")
	attrReason   = attribute.Key("holdfast.reason")
)

// telemetry makes spans and metrics with the API of OpenTelemetry; where no SDK is
// installed it costs a comparison.
type telemetry struct {
	tracer      trace.Tracer         // of WithTracerProvider; nil: the global one
	placeholder trace.TracerProvider // the global provider that stands for "none set"

	acquireTime metric.Float64Histogram
	releaseTime metric.Float64Histogram
	renewals    metric.Int64Counter
	losses      metric.Int64Counter
	reconnects  metric.Int64Counter
	gauges      metric.Registration // nil: could not be registered
}

func newTelemetry(cfg config, m *Manager) *telemetry {
	t := &telemetry{}
	switch p := cfg.tracer; p.(type) {
	case nil:
		// Before an SDK is set, the global provider is a stand-in whose spans record
		// nothing but cost three allocations each. Its type is not exported.
		if g := otel.GetTracerProvider(); fmt.Sprintf("%T", g) == "*global.tracerProvider" {
			t.placeholder = g
		}
	case noop.TracerProvider:
		t.tracer = noop.Tracer{}
	default:
		t.tracer = p.Tracer(scope)
	}
	meters := cfg.meter
	if meters == nil {
		meters = otel.GetMeterProvider()
	}
	if err := t.instruments(meters.Meter(scope), m); err != nil {
		m.log.Warn("holdfast: some metrics are not available", "error", err)
	}
	return t
}

// seconds are the bucket boundaries of durations: from a loopback round trip to the
// patience of a person.
var seconds = metric.WithExplicitBucketBoundaries(
	.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60)

func (t *telemetry) instruments(meter metric.Meter, m *Manager) error {
	var errs [9]error
	t.acquireTime, errs[0] = meter.Float64Histogram("holdfast.acquire.duration", metric.WithUnit("s"), seconds,
		metric.WithDescription("From the call of Lock or TryLock to its result."))
	t.releaseTime, errs[1] = meter.Float64Histogram("holdfast.release.duration", metric.WithUnit("s"), seconds,
		metric.WithDescription("From the call of Unlock to its result."))
	t.renewals, errs[2] = meter.Int64Counter("holdfast.renewals", metric.WithUnit("{renewal}"),
		metric.WithDescription("Renewals of holds, by outcome."))
	t.losses, errs[3] = meter.Int64Counter("holdfast.lost", metric.WithUnit("{lock}"),
		metric.WithDescription("Holds that ended without their holder's doing."))
	held, err := meter.Int64ObservableUpDownCounter("holdfast.held", metric.WithUnit("{lock}"),
		metric.WithDescription("Locks held by this process."))
	errs[4] = err
	waiters, err := meter.Int64ObservableUpDownCounter("holdfast.waiters", metric.WithUnit("{waiter}"),
		metric.WithDescription("Callers waiting for a lock in this process."))
	errs[5] = err
	subscriptions, err := meter.Int64ObservableUpDownCounter("holdfast.pubsub.subscriptions", metric.WithUnit("{channel}"),
		metric.WithDescription("Channels subscribed."))
	errs[6] = err
	t.reconnects, errs[7] = meter.Int64Counter("holdfast.pubsub.reconnects", metric.WithUnit("{connection}"),
		metric.WithDescription("Pub/sub connections lost; one that cannot be made counts once."))
	t.gauges, errs[8] = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := m.Stats()
		o.ObserveInt64(held, int64(s.Held))
		o.ObserveInt64(waiters, int64(s.Waiting))
		o.ObserveInt64(subscriptions, int64(s.Subscriptions))
		return nil
	}, held, waiters, subscriptions)
	return errors.Join(errs[:]...)
}

func (t *telemetry) close() {
	if t.gauges != nil {
		_ = t.gauges.Unregister() // it fails only for a foreign registration
	}
}

// start begins a span; the span is nil if nothing would record it.
func (t *telemetry) start(ctx context.Context, name string) (context.Context, trace.Span) {
	tracer := t.tracer
	if tracer == nil {
		p := otel.GetTracerProvider()
		if p == t.placeholder {
			return ctx, nil
		}
		tracer = p.Tracer(scope)
	}
	if _, none := tracer.(noop.Tracer); none {
		return ctx, nil
	}
	ctx, span := tracer.Start(ctx, name)
	if !span.IsRecording() {
		return ctx, nil
	}
	return ctx, span
}

// operation is one Lock, TryLock or Unlock that is observed; nil where nobody observes,
// which is to cost next to nothing.
type operation struct {
	ctx   context.Context // with the span
	span  trace.Span      // nil: not recorded
	time  metric.Float64Histogram
	begun time.Time // zero: not measured
	kind  kind
}

// begin returns the context with the operation's span as well, ctx itself if there is none.
func (t *telemetry) begin(ctx context.Context, name string, h metric.Float64Histogram, k kind, isPart bool) (context.Context, *operation) {
	ctx, span := t.start(ctx, name)
	measured := !isPart && h.Enabled(ctx)
	if span == nil && !measured {
		return ctx, nil
	}
	op := &operation{ctx: ctx, span: span, time: h, kind: k}
	if measured {
		op.begun = time.Now()
	}
	return ctx, op
}

// part says that an operation is on one of several locks: it has a span, and is not measured. They are
// measured as a whole, or no number of any type of lock would be that of the callers.
const part = true

// nameAttribute is a lock's name for a span. A name may be any bytes, and an exporter drops all spans that it
// was to send with one that is not UTF-8.
func nameAttribute(name string) attribute.KeyValue {
	return attrName.String(strings.ToValidUTF8(name, "\uFFFD"))
}

// acquire begins a Lock or TryLock of h.
func (t *telemetry) acquire(ctx context.Context, h *handle, isPart bool) (context.Context, *operation) {
	ctx, op := t.begin(ctx, "lock.acquire", t.acquireTime, h.kind, isPart)
	if op != nil && op.span != nil {
		op.span.SetAttributes(nameAttribute(h.name), attrType.String(h.kind.String()),
			attrLease.Int64(h.cfg.ttl.Milliseconds()))
	}
	return ctx, op
}

// release begins an Unlock of l.
func (t *telemetry) release(ctx context.Context, l *Lease, isPart bool) (context.Context, *operation) {
	ctx, op := t.begin(ctx, "lock.release", t.releaseTime, l.kind, isPart)
	if op != nil && op.span != nil {
		op.span.SetAttributes(nameAttribute(l.name), attrType.String(l.kind.String()))
	}
	return ctx, op
}

// trace is the parent for the span that go-redis makes of a command that is sent for
// this operation alone; nil if nothing is recorded. Only its values are used.
func (op *operation) trace() context.Context {
	if op == nil || op.span == nil {
		return nil
	}
	return op.ctx
}

// acquired ends a Lock or TryLock with what it returns.
func (op *operation) acquired(l *Lease, err error) {
	if op == nil {
		return
	}
	if op.span != nil && l != nil {
		op.span.SetAttributes(attrWaitMode.String(l.how.String()))
		if l.token != 0 {
			op.span.SetAttributes(attrToken.Int64(int64(l.token)))
		}
	}
	op.finish(outcomeOf(err), err)
}

// released ends an Unlock with what it returns.
func (op *operation) released(err error) {
	switch {
	case op == nil:
	case err == nil:
		op.finish("released", nil)
	default:
		op.finish("error", err)
	}
}

func (op *operation) finish(outcome string, err error) {
	if !op.begun.IsZero() {
		op.time.Record(op.ctx, time.Since(op.begun).Seconds(),
			metric.WithAttributes(attrType.String(op.kind.String()), attrOutcome.String(outcome)))
	}
	if op.span == nil {
		return
	}
	op.span.SetAttributes(attrOutcome.String(outcome))
	if err != nil && outcome == "error" {
		op.span.SetStatus(codes.Error, strings.ToValidUTF8(err.Error(), "\uFFFD")) // a cause is the caller's
		op.span.SetAttributes(attribute.String("error.type", errorType(err)))
	}
	op.span.End()
}

// outcomeOf names the result of an acquire. A busy lock and a caller that gave up are
// not errors.
func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "acquired"
	case !errors.Is(factOf(err), ErrNotAcquired):
		return "error"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	return "not_acquired"
}

// factOf returns what an error says itself, without its causes: why a caller's context has ended
// can be the error of another lock.
func factOf(err error) error {
	if e, ok := err.(*lockError); ok {
		return e.sentinel
	}
	return err
}

// errorType is the low-cardinality name of an error.
func errorType(err error) string {
	err = factOf(err)
	for _, known := range []struct {
		err  error
		name string
	}{
		{ErrLeaseLost, "lease_lost"}, {ErrMaxHold, "max_hold"}, {ErrNotHeld, "not_held"},
		{ErrClosed, "closed"}, {ErrWouldDeadlock, "would_deadlock"}, {ErrWrongKind, "wrong_kind"},
		{ErrInvalidName, "invalid_name"}, {ErrInvalidOption, "invalid_option"}, {ErrUnavailable, "unavailable"},
	} {
		if errors.Is(err, known.err) {
			return known.name
		}
	}
	return "other"
}

func (t *telemetry) renewed(outcome string, n int) {
	ctx := context.Background()
	if t.renewals.Enabled(ctx) {
		t.renewals.Add(ctx, int64(n), metric.WithAttributes(attrOutcome.String(outcome)))
	}
}

func (t *telemetry) disconnected() {
	ctx := context.Background()
	if t.reconnects.Enabled(ctx) {
		t.reconnects.Add(ctx, 1)
	}
}

func (t *telemetry) lost(reason LostReason) {
	ctx := context.Background()
	if t.losses.Enabled(ctx) {
		t.losses.Add(ctx, 1, metric.WithAttributes(attrReason.String(string(reason))))
	}
}
