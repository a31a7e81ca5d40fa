package holdfast_test

import "github.com/holdfast-go/holdfast/internal/locktest"

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
