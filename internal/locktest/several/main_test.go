package several

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestMain(m *testing.M) {
	locktest.Main(m, map[string]func([]string){callersRole: redlockCallers}, nil)
}

const (
	patience = locktest.Patience
	section  = locktest.Visit
)

var (
	managerOn   = locktest.ManagerOn
	managerVia  = locktest.ManagerVia
	mustLock    = locktest.MustLock
	waits       = locktest.Waits
	waitsFor    = locktest.Calls
	soonest     = locktest.Soonest
	mustUnlock  = locktest.MustUnlock
	mustExtend  = locktest.MustExtend
	unlock      = locktest.Unlock
	inspected   = locktest.Inspected
	wantErr     = locktest.WantErr
	lastingKeys = locktest.LastingKeys
	queued      = locktest.Queued
	scriptOn    = locktest.ScriptOn
	alone       = locktest.Alone
)
