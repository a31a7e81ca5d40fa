// Package seam is what holdfasttest and the page of debug need of the library and users must not have.
package seam

import "github.com/holdfast-go/holdfast/internal/journal"

// Events returns the latest lines of a *holdfast.Manager's log, the oldest first. Package holdfast sets it when it is initialized.
var Events func(manager any) []journal.Event

// Lose ends what a *holdfast.Manager holds of a key, as if a renewal had been told that the key is gone. When it returns, the leases and
// their contexts have ended. Package holdfast sets it when it is initialized.
var Lose func(manager any, key string)
