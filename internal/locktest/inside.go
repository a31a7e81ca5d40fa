package locktest

import (
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/seam"
)

// ConfirmGrants makes a manager trust no grant by the server without asking Redis.
func ConfirmGrants() holdfast.Option { return tuned(func(c *engine.Config) { c.Confirm = true }) }

// StepAside makes a caller that comes back at once to a manager ask after d; see mutex.go of internal/lock.
func StepAside(d time.Duration) holdfast.Option { return tuned(func(c *engine.Config) { c.Aside = d }) }

// Readmission makes a manager take a missing right for final after d; see trouble.go of the engine.
func Readmission(d time.Duration) holdfast.Option {
	return tuned(func(c *engine.Config) { c.Readmission = d })
}

func tuned(tune func(*engine.Config)) holdfast.Option { return seam.Tune(tune).(holdfast.Option) }

// Pending is how many requests and releases of m are under way.
func Pending(m *holdfast.Manager) int { return seam.Engine(m).Pending() }

// Deserted is how many channels m is to look at because they have no listeners any more.
func Deserted(m *holdfast.Manager) int { return seam.Engine(m).Subscriber.Deserted() }
