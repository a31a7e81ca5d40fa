package holdfast

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// AwayFor is how long a lock has to be away for the next one to step aside.
const AwayFor = engine.AwayFor

// Pending is how many requests and releases are under way.
func (m *Manager) Pending() int { return m.engine.Pending() }

// Deserted is how many channels are to be looked at because nobody listened to them any more.
func (m *Manager) Deserted() int { return m.engine.Subscriber.Deserted() }

// NextPause is how long, but for chance, the waiters of m would pause altogether, should another request
// bring no verdict.
func (m *Manager) NextPause() time.Duration { return m.engine.NextPause() }

// ScriptText returns the text of a script as Redis gets it.
func ScriptText(name string) string { return protocol.Text(name) }
