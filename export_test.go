package holdfast

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// AwayFor is how long a lock has to be away for the next one to step aside.
const AwayFor = awayFor

// StepAside makes who comes back at once to a manager ask after d; see aside.go.
func StepAside(d time.Duration) Option { return option(func(c *config) { c.aside = d }) }

// Readmission makes a manager take a missing right for final after d; see trouble.go.
func Readmission(d time.Duration) Option { return option(func(c *config) { c.readmission = d }) }

// ConfirmGrants makes a manager trust no grant by the server without asking Redis.
func ConfirmGrants() Option { return option(func(c *config) { c.confirm = true }) }

// Pending is how many requests and releases are under way.
func (m *Manager) Pending() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pending
}

// Deserted is how many channels are to be looked at because nobody listened to them any more.
func (m *Manager) Deserted() int { return m.subscriber.Deserted() }

// NextPause is how long, but for chance, the entries of m would pause altogether, should another request
// bring no verdict.
func (m *Manager) NextPause() (d time.Duration) {
	m.mu.Lock()
	var entries []*entry
	for _, family := range m.entries {
		for _, e := range family {
			entries = append(entries, e)
		}
	}
	m.mu.Unlock()
	for _, e := range entries {
		e.mu.Lock()
		if e.trouble != nil {
			pauses := *e.trouble.pauses
			pauses.RandomizationFactor = 0 // asked again and again, the longest of many would be told
			d += pauses.NextBackOff()
		}
		e.mu.Unlock()
	}
	return d
}

// ScriptText returns the text of a script as Redis gets it.
func ScriptText(name string) string { return protocol.Text(name) }
