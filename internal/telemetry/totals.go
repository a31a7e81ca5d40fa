package telemetry

import (
	"context"
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
