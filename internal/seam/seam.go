// Package seam is what holdfasttest, the page of debug, the simulation and the library's own tests need of the library and users must not have.
package seam

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/journal"
)

// Engine returns the engine of a *holdfast.Manager. Package holdfast sets it when it is initialized.
var Engine func(manager any) *engine.Engine

// Tune returns a holdfast.Option that changes what the engine is made of. Package holdfast sets it when it is initialized.
var Tune func(tune func(*engine.Config)) any

// Events returns the latest lines of a *holdfast.Manager's log, the oldest first. Package holdfast sets it when it is initialized.
var Events func(manager any) []journal.Event

// Lose ends what a *holdfast.Manager holds of a key, as if a renewal had been told that the key is gone. When it returns, the leases and
// their contexts have ended. Package holdfast sets it when it is initialized.
var Lose func(manager any, key string)

// Now is the clock of the pages that package debug makes from then on: bench/browser lets ten minutes of looks pass.
var Now = time.Now
