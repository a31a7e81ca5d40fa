// Package faults has tests of locks when something goes wrong on the way: requests and answers are late or lost, replies are none, rights are
// missing, connections die, masters are demoted, and clients are closed.
package faults

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestMain(m *testing.M) { locktest.Main(m, nil, nil) }

const patience = locktest.Patience

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
	wantErr     = locktest.WantErr
	lastingKeys = locktest.LastingKeys
	queued      = locktest.Queued
	scriptOn    = locktest.ScriptOn
	alone       = locktest.Alone
)
