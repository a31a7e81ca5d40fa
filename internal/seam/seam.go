// Package seam is what holdfasttest needs of the library and users must not have.
package seam

// Lose ends what a *holdfast.Manager holds of a key, as if a renewal had been told that the key is gone. When it returns, the leases and
// their contexts have ended. Package holdfast sets it when it is initialized.
var Lose func(manager any, key string)
