// Package telemetry has tests of what operators see: logs, metrics, spans, and the names in them and in errors.
package telemetry

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestMain(m *testing.M) { locktest.Main(m, nil, nil) }

const patience = locktest.Patience

var (
	managerOn     = locktest.ManagerOn
	managerVia    = locktest.ManagerVia
	mustLock      = locktest.MustLock
	waits         = locktest.Waits
	mustUnlock    = locktest.MustUnlock
	unlock        = locktest.Unlock
	inspected     = locktest.Inspected
	untilAnswered = locktest.UntilAnswered
	wantErr       = locktest.WantErr
	queued        = locktest.Queued
	scriptOn      = locktest.ScriptOn
	granted       = locktest.Granted
)
