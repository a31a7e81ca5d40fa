// Package demo is the flash sale that `holdfast demo` runs: many buyers in several
// operating-system processes fight for a few phones that are guarded by one lock.
//
// A [Sale] is the parent: it connects to Redis or starts a server of its own, puts
// the phones on the shelf, starts the processes, collects what their buyers report
// and compares that with what is left in Redis. [Work] is what each process runs.
//
// The stock is counted in the most naive way there is, GET, think, SET, in the code
// of the shop: the lock is all that keeps the count right, and Config.Unsafe shows
// what happens without it.
package demo
