package holdfast_test

import (
	"log"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/locktest/several"
)

const (
	patience = locktest.Patience
	section  = locktest.Visit
)

var (
	managerOn     = locktest.ManagerOn
	managerVia    = locktest.ManagerVia
	mustLock      = locktest.MustLock
	waits         = locktest.Waits
	waitsFor      = locktest.Calls
	soonest       = locktest.Soonest
	mustUnlock    = locktest.MustUnlock
	mustExtend    = locktest.MustExtend
	unlock        = locktest.Unlock
	inspected     = locktest.Inspected
	untilAnswered = locktest.UntilAnswered
	wantErr       = locktest.WantErr
	lastingKeys   = locktest.LastingKeys
	queued        = locktest.Queued
	scriptOn      = locktest.ScriptOn
	alone         = locktest.Alone
)

// Leases of several locks have a package of tests of their own, which has these.

type electorate = several.Electorate

var (
	multi       = several.Multi
	servers     = several.Servers
	candidateOn = several.CandidateOn
	mutexes     = several.Mutexes
)

// must returns v, in a process that a test started.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// quantile is in seconds.
func quantile(all []time.Duration, q float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)].Seconds()
}
