package holdfast

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// Stats are one manager's counters since New and its gauges. The counters are read one by
// one: a Stats taken under load need not add up.
type Stats struct {
	// Gauges.
	Held          int // holds in Redis that this process keeps
	Waiting       int // callers waiting for a lock
	Locks         int // names in use: held, waited for, being released, or handed to another process a moment ago
	Subscriptions int // channels subscribed

	// Callers.
	Reentered uint64 // leases granted by re-entry
	HandedOff uint64 // leases granted without Redis: passed on by Unlock, or beside other readers
	Granted   uint64 // leases granted to a queued waiter by another process's release
	Released  uint64 // leases ended by Unlock
	Lost      uint64 // holds that ended before their Unlock, including those that WithMaxHold ended

	// Redis.
	Commands        uint64 // script calls sent, including repeated ones
	Batches         uint64 // pipelines they were sent in
	Troubles        uint64 // requests that failed, were refused or took too long
	Outages         uint64 // times when Redis answered no request for a second or more
	Renewals        uint64 // holds renewed
	RenewalFailures uint64 // holds whose renewal failed and was tried again
	Wakeups         uint64 // messages for waiters: grants, and reasons to send a request again
	Polls           uint64 // requests of waiters sent because no message arrived
	Reconnects      uint64 // pub/sub connections lost; repeated failures to reconnect count once
}

// counters are the part of Stats that is counted where it happens.
type counters struct {
	reentered, handedOff, granted       atomic.Uint64
	released, lost                      atomic.Uint64
	outages                             atomic.Uint64
	troubles, renewals, renewalFailures atomic.Uint64
	wakeups, polls, reconnects          atomic.Uint64
}

// Stats returns the manager's figures. It does no I/O and is for humans and tests: it
// visits every lock that the process knows.
func (m *Manager) Stats() Stats {
	commands, batches := m.executor.Commands()
	s := Stats{
		Subscriptions:   m.subscriber.Subscriptions(),
		Reentered:       m.stats.reentered.Load(),
		HandedOff:       m.stats.handedOff.Load(),
		Granted:         m.stats.granted.Load(),
		Released:        m.stats.released.Load(),
		Lost:            m.stats.lost.Load(),
		Commands:        commands,
		Batches:         batches,
		Troubles:        m.stats.troubles.Load(),
		Outages:         m.stats.outages.Load(),
		Renewals:        m.stats.renewals.Load(),
		RenewalFailures: m.stats.renewalFailures.Load(),
		Wakeups:         m.stats.wakeups.Load(),
		Polls:           m.stats.polls.Load(),
		Reconnects:      m.stats.reconnects.Load(),
	}
	for _, e := range m.snapshot() {
		e.mu.Lock()
		s.Locks++
		s.Waiting += e.waiters.Len()
		s.Held += len(e.reads.all())
		if e.hold != nil {
			s.Held++
		}
		e.mu.Unlock()
	}
	return s
}

// gauges returns what metrics show of Stats.
func (m *Manager) gauges() telemetry.Gauges {
	s := m.Stats()
	g := telemetry.Gauges{
		Held: s.Held, Waiting: s.Waiting, Subscriptions: s.Subscriptions,
		HeldOldest: make(telemetry.Oldest), WaitingOldest: make(telemetry.Oldest),
	}
	for _, e := range m.snapshot() {
		e.ages(g)
	}
	return g
}

// totals returns what metrics count of what the manager has counted.
func (m *Manager) totals() telemetry.Totals {
	return telemetry.Totals{Polls: m.stats.polls.Load(), Troubles: m.stats.troubles.Load(), Grants: m.classes.grants()}
}

// snapshot returns the entries of now.
func (m *Manager) snapshot() []*entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entriesLocked()
}

func (m *Manager) entriesLocked() (all []*entry) {
	for _, r := range m.entries {
		all = slices.AppendSeq(all, maps.Values(r))
	}
	return all
}
