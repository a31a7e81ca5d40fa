package telemetry

import (
	"context"
	"reflect"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/metric"
)

// Totals are what a manager has counted since it was made.
type Totals struct {
	Polls, Troubles uint64
	Grants          []Grants
}

// Grants is how many leases were granted in one way.
type Grants struct {
	Key   GrantKey
	Count uint64
}

// GrantKey is that way.
type GrantKey struct{ Type, WaitMode, Class string }

// totals brings what is counted under locks, where no code of the user may run, to counters: when metrics are collected,
// and at the end. An observable counter would fall when a manager of several is closed.
type totals struct {
	read func() Totals

	polls    metric.Int64Counter // set before read is called
	troubles metric.Int64Counter
	grants   metric.Int64Counter

	mu   sync.Mutex // guards the following
	last Totals     // what the counters have, but for Grants
	have map[GrantKey]uint64
}

// flush adds what has come since the last time.
func (t *totals) flush(ctx context.Context) {
	if !t.polls.Enabled(ctx) && !t.troubles.Enabled(ctx) && !t.grants.Enabled(ctx) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.read()
	add := func(to metric.Int64Counter, now uint64, last *uint64, options ...metric.AddOption) {
		if now > *last {
			to.Add(ctx, int64(now-*last), options...)
			*last = now
		}
	}
	add(t.polls, now.Polls, &t.last.Polls)
	add(t.troubles, now.Troubles, &t.last.Troubles)
	if t.have == nil {
		t.have = make(map[GrantKey]uint64)
	}
	for _, g := range now.Grants {
		last := t.have[g.Key]
		add(t.grants, g.Count, &last, metric.WithAttributes(attributesOf(g.Key.Class, attrType.String(g.Key.Type), attrWaitMode.String(g.Key.WaitMode))...))
		t.have[g.Key] = last
	}
}

// Several managers of a program report to one provider, as those of a Redlock do, and of a gauge the last value counts. So
// each reports the largest of all of them.

// peers are the managers that report.
var peers struct {
	sync.Mutex // guards the following; no other lock is taken with it held
	all        []*Telemetry
}

// meet adds t to those that report to p.
func (t *Telemetry) meet(p metric.MeterProvider) {
	if !reflect.TypeOf(p).Comparable() {
		return // then it is alone
	}
	t.provider = p
	peers.Lock()
	defer peers.Unlock()
	peers.all = append(peers.all, t)
}

// part takes t out.
func (t *Telemetry) part() {
	peers.Lock()
	defer peers.Unlock()
	peers.all = slices.DeleteFunc(peers.all, func(other *Telemetry) bool { return other == t })
}

// others returns the other managers that report where t does.
func (t *Telemetry) others() []*Telemetry {
	peers.Lock()
	defer peers.Unlock()
	return slices.DeleteFunc(slices.Clone(peers.all), func(other *Telemetry) bool { return other == t || other.provider != t.provider })
}

// Oldest is how long something has lasted, in seconds, by class.
type Oldest map[string]float64

// Saw notes an age.
func (o Oldest) Saw(class string, seconds float64) { o[class] = max(o[class], seconds) }

func (o Oldest) merge(other Oldest) {
	for class, seconds := range other {
		o.Saw(class, seconds)
	}
}
