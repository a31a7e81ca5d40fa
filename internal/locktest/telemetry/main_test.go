// Package telemetry has tests of what operators see: logs, metrics, spans, and the names in them and in errors.
package telemetry

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestMain(m *testing.M) { locktest.Main(m, nil, nil) }
