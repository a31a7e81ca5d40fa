// Package queue has tests of the order of grants: hand-offs in a process and between processes, callers that leave, crowds, and those of the dead.
package queue

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestMain(m *testing.M) { locktest.Main(m, nil, nil) }
