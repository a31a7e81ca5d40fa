package holdfast

import (
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

// Stats returns the manager's figures. It does no I/O and is for humans and tests: it
// visits every lock that the process knows.
func (m *Manager) Stats() Stats {
	commands, batches := m.engine.Executor.Commands()
	s := Stats{
		Subscriptions:   m.engine.Subscriber.Subscriptions(),
		Reentered:       m.engine.Classes.Reentered(),
		HandedOff:       m.engine.Classes.HandedOff(),
		Granted:         m.engine.Stats.Granted.Load(),
		Released:        m.engine.Stats.Released.Load(),
		Lost:            m.engine.Stats.Lost.Load(),
		Commands:        commands,
		Batches:         batches,
		Troubles:        m.engine.Stats.Troubles.Load(),
		Outages:         m.engine.Stats.Outages.Load(),
		Renewals:        m.engine.Stats.Renewals.Load(),
		RenewalFailures: m.engine.Stats.RenewalFailures.Load(),
		Wakeups:         m.engine.Stats.Wakeups.Load(),
		Polls:           m.engine.Stats.Polls.Load(),
		Reconnects:      m.engine.Stats.Reconnects.Load(),
	}
	s.Locks, s.Waiting, s.Held = m.engine.Counts()
	return s
}

// gauges returns what metrics show of Stats.
func (m *Manager) gauges() telemetry.Gauges {
	s := m.Stats()
	g := telemetry.Gauges{
		Held: s.Held, Waiting: s.Waiting, Subscriptions: s.Subscriptions,
		HeldOldest: make(telemetry.Oldest), WaitingOldest: make(telemetry.Oldest),
	}
	m.engine.Ages(g)
	return g
}

// totals returns what metrics count of what the manager has counted.
func (m *Manager) totals() telemetry.Totals {
	return telemetry.Totals{Polls: m.engine.Stats.Polls.Load(), Troubles: m.engine.Stats.Troubles.Load(), Grants: m.engine.Classes.Grants()}
}
