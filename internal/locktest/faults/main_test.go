// Package faults has tests of locks when something goes wrong on the way: requests and answers are late or lost, replies are none, rights are
// missing, connections die, masters are demoted, and clients are closed.
package faults

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestMain(m *testing.M) { locktest.Main(m, nil, nil) }
