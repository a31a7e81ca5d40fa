// Package telemetry makes the spans and metrics of a manager with the API of OpenTelemetry. Where no SDK is
// installed it costs a comparison.
package telemetry

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
	attrClass    = attribute.Key("holdfast.class")
)

// attributesOf adds a class, if there is one, to others.
func attributesOf(class string, others ...attribute.KeyValue) []attribute.KeyValue {
	if class == "" {
		return others
	}
	return append(others, attrClass.String(class))
}

// Telemetry is that of one manager.
type Telemetry struct {
	tracer      trace.Tracer         // of WithTracerProvider; nil: the global one
	placeholder trace.TracerProvider // the global provider that stands for "none set"

	acquireTime metric.Float64Histogram
	releaseTime metric.Float64Histogram
	renewals    metric.Int64Counter
	holdTime    metric.Float64Histogram
	slack       metric.Float64Histogram
	losses      metric.Int64Counter
	reconnects  metric.Int64Counter
	totals      totals
	gauges      func() Gauges
	callback    metric.Registration  // nil: could not be registered
	provider    metric.MeterProvider // of the gauges' peers; nil: there are none
}

// Gauges are read when metrics are collected.
type Gauges struct {
	Held, Waiting, Subscriptions int
	HeldOldest, WaitingOldest    Oldest
	Permits                      map[string]int64 // by class
}

// New makes spans with the tracers and metrics with the meters of these providers, the global ones where they are
// nil. The error says which metrics are not available; the others are.
func New(tracers trace.TracerProvider, meters metric.MeterProvider, gauges func() Gauges, counted func() Totals) (*Telemetry, error) {
	t := &Telemetry{gauges: gauges, totals: totals{read: counted}}
	switch p := tracers.(type) {
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
	if meters == nil {
		meters = otel.GetMeterProvider()
	}
	t.meet(meters)
	return t, t.instruments(meters.Meter(scope))
}

// seconds are the bucket boundaries of durations: from a loopback round trip to the
// patience of a person.
var seconds = metric.WithExplicitBucketBoundaries(
	.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60)

// longSeconds are those of holds: up to a job of a day.
var longSeconds = metric.WithExplicitBucketBoundaries(
	.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400)

// fractions are those of a lease. A renewal is due when two thirds are left.
var fractions = metric.WithExplicitBucketBoundaries(0, .05, .1, .2, .3, .4, .5, .6, .65, .7)

func (t *Telemetry) instruments(meter metric.Meter) error {
	var errs []error
	histogram := func(name, unit string, buckets metric.HistogramOption, says string) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit(unit), buckets, metric.WithDescription(says))
		errs = append(errs, err)
		return h
	}
	counter := func(name, unit, says string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(says))
		errs = append(errs, err)
		return c
	}
	number := func(name, unit, says string) metric.Int64ObservableUpDownCounter {
		n, err := meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(says))
		errs = append(errs, err)
		return n
	}
	age := func(name, unit, says string) metric.Float64ObservableGauge {
		g, err := meter.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(says))
		errs = append(errs, err)
		return g
	}
	t.acquireTime = histogram("holdfast.acquire.duration", "s", seconds, "From the call of Lock or TryLock to its result.")
	t.releaseTime = histogram("holdfast.release.duration", "s", seconds, "From the call of Unlock to its result.")
	t.holdTime = histogram("holdfast.hold.duration", "s", longSeconds, "From the grant of a lease to its end.")
	t.slack = histogram("holdfast.renewal.slack", "1", fractions, "What was left of a lease when its renewal was confirmed, as a fraction.")
	t.renewals = counter("holdfast.renewals", "{renewal}", "Renewals of holds, by outcome.")
	t.losses = counter("holdfast.lost", "{lock}", "Holds that ended without their holder's doing.")
	t.totals.grants = counter("holdfast.grants", "{lease}", "Leases granted, by how they came about.")
	t.totals.polls = counter("holdfast.polls", "{request}", "Requests of waiters sent because no message arrived.")
	t.totals.troubles = counter("holdfast.troubles", "{request}", "Requests that failed, were refused or took too long.")
	t.reconnects = counter("holdfast.pubsub.reconnects", "{connection}", "Pub/sub connections lost. Repeated failures to reconnect count once.")
	held := number("holdfast.held", "{lock}", "Locks held by this process.")
	permits := number("holdfast.permits", "{permit}", "Permits of semaphores held by this process.")
	waiters := number("holdfast.waiters", "{waiter}", "Callers waiting for a lock in this process.")
	heldOldest := age("holdfast.held.oldest", "s", "For how long the oldest lease of this process has been held.")
	waitingOldest := age("holdfast.waiting.oldest", "s", "For how long the oldest waiter of this process has waited.")
	subscriptions := number("holdfast.pubsub.subscriptions", "{channel}", "Channels subscribed.")
	var err error
	t.callback, err = meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		g := t.gauges()
		o.ObserveInt64(held, int64(g.Held))
		o.ObserveInt64(waiters, int64(g.Waiting))
		o.ObserveInt64(subscriptions, int64(g.Subscriptions))
		for class, n := range g.Permits {
			o.ObserveInt64(permits, n, metric.WithAttributes(attributesOf(class)...))
		}
		for _, other := range t.others() {
			more := other.gauges()
			g.HeldOldest.merge(more.HeldOldest)
			g.WaitingOldest.merge(more.WaitingOldest)
		}
		for class, age := range g.HeldOldest {
			o.ObserveFloat64(heldOldest, age, metric.WithAttributes(attributesOf(class)...))
		}
		for class, age := range g.WaitingOldest {
			o.ObserveFloat64(waitingOldest, age, metric.WithAttributes(attributesOf(class)...))
		}
		t.totals.flush(ctx)
		return nil
	}, held, permits, waiters, subscriptions, heldOldest, waitingOldest)
	return errors.Join(append(errs, err)...)
}

// Close ends the gauges, and counts what has not been counted.
func (t *Telemetry) Close() {
	if t.callback != nil {
		_ = t.callback.Unregister() // it fails only for a foreign registration
	}
	t.part()
	t.totals.flush(context.Background())
}

// start begins a span; the span is nil if nothing would record it.
func (t *Telemetry) start(ctx context.Context, name string) (context.Context, trace.Span) {
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

// Operation is one Lock, TryLock or Unlock that is observed; nil if nothing observes it,
// which is to cost next to nothing.
type Operation struct {
	ctx   context.Context // with the span
	span  trace.Span      // nil: not recorded
	time  metric.Float64Histogram
	begun time.Time // zero: not measured
	of    Subject
	mode  string // of an acquire that was granted; else empty
}

// Subject is the lock that an operation is on. Telemetry asks for it only if something observes the operation.
type Subject struct {
	Name, Kind, Class string
	TTL               time.Duration // that an acquire asks for; 0: it is none
}

// begin returns the context with the operation's span as well, ctx itself if there is none.
func (t *Telemetry) begin(ctx context.Context, name string, h metric.Float64Histogram, of func() Subject, measure bool) (context.Context, *Operation) {
	ctx, span := t.start(ctx, name)
	measure = measure && h.Enabled(ctx)
	if span == nil && !measure {
		return ctx, nil
	}
	op := &Operation{ctx: ctx, span: span, time: h, of: of()}
	if measure {
		op.begun = time.Now()
	}
	if span != nil {
		span.SetAttributes(nameAttribute(op.of.Name), attrType.String(op.of.Kind))
		if op.of.TTL != 0 {
			span.SetAttributes(attrLease.Int64(op.of.TTL.Milliseconds()))
		}
	}
	return ctx, op
}

// nameAttribute is a lock's name for a span. A name may be any bytes, and an exporter drops all spans that it
// was to send with one that is not UTF-8.
func nameAttribute(name string) attribute.KeyValue {
	return attrName.String(strings.ToValidUTF8(name, "\uFFFD"))
}

// Acquire begins a Lock or TryLock. It has a span in any case, and a measurement if measure.
func (t *Telemetry) Acquire(ctx context.Context, of func() Subject, measure bool) (context.Context, *Operation) {
	return t.begin(ctx, "lock.acquire", t.acquireTime, of, measure)
}

// Release begins an Unlock.
func (t *Telemetry) Release(ctx context.Context, of func() Subject, measure bool) (context.Context, *Operation) {
	return t.begin(ctx, "lock.release", t.releaseTime, of, measure)
}

// Trace is the parent for the span that go-redis makes of a command that is sent for
// this operation alone; nil if nothing is recorded. Only its values are used.
func (op *Operation) Trace() context.Context {
	if op == nil || op.span == nil {
		return nil
	}
	return op.ctx
}

// Granted says how an acquire waited, and its fencing token; 0: none.
func (op *Operation) Granted(waitMode string, token uint64) {
	op.mode = waitMode
	if op.span == nil {
		return
	}
	op.span.SetAttributes(attrWaitMode.String(waitMode))
	if token != 0 {
		op.span.SetAttributes(attrToken.Int64(int64(token)))
	}
}

// End ends the operation. Where the outcome is "error", the span has the text of err and its type, a name of few.
func (op *Operation) End(outcome, errorType string, err error) {
	if !op.begun.IsZero() {
		attributes := attributesOf(op.of.Class, attrType.String(op.of.Kind), attrOutcome.String(outcome))
		if op.mode != "" {
			attributes = append(attributes, attrWaitMode.String(op.mode))
		}
		op.time.Record(op.ctx, time.Since(op.begun).Seconds(), metric.WithAttributes(attributes...))
	}
	if op.span == nil {
		return
	}
	op.span.SetAttributes(attrOutcome.String(outcome))
	if err != nil && outcome == "error" {
		op.span.SetStatus(codes.Error, strings.ToValidUTF8(err.Error(), "\uFFFD")) // a cause is the caller's
		op.span.SetAttributes(attribute.String("error.type", errorType))
	}
	op.span.End()
}

// Renewed counts n renewals of that outcome.
func (t *Telemetry) Renewed(outcome string, n int) {
	ctx := context.Background()
	if t.renewals.Enabled(ctx) {
		t.renewals.Add(ctx, int64(n), metric.WithAttributes(attrOutcome.String(outcome)))
	}
}

// Disconnected counts a pub/sub connection that was lost, or that was alive and unheard.
func (t *Telemetry) Disconnected(unheard bool) {
	ctx := context.Background()
	if t.reconnects.Enabled(ctx) {
		reason := "broken"
		if unheard {
			reason = "unheard"
		}
		t.reconnects.Add(ctx, 1, metric.WithAttributes(attrReason.String(reason)))
	}
}

// Lost counts a hold that ended without its holder's doing.
func (t *Telemetry) Lost(reason string) {
	ctx := context.Background()
	if t.losses.Enabled(ctx) {
		t.losses.Add(ctx, 1, metric.WithAttributes(attrReason.String(reason)))
	}
}

// Held measures a lease that has ended.
func (t *Telemetry) Held(of func() Subject, outcome string, since func() time.Duration) {
	ctx := context.Background()
	if t.holdTime.Enabled(ctx) {
		l := of()
		t.holdTime.Record(ctx, since().Seconds(), metric.WithAttributes(attributesOf(l.Class, attrType.String(l.Kind), attrOutcome.String(outcome))...))
	}
}

// MeasuresSlack reports whether Slack does anything.
func (t *Telemetry) MeasuresSlack() bool { return t.slack.Enabled(context.Background()) }

// Slack measures what was left of a lease when a renewal was confirmed.
func (t *Telemetry) Slack(fraction float64) { t.slack.Record(context.Background(), fraction) }
