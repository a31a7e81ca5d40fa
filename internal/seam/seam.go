// Package seam is what holdfasttest needs of the library and users must not have.
package seam

// Recheck has a *holdfast.Manager ask Redis whether what it holds of a key is still there, instead of finding out at the next
// renewal. It returns the channels that are closed when these leases end. Package holdfast sets it when it is initialized.
var Recheck func(manager any, key string) []<-chan struct{}
