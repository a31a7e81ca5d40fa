package explore

import (
	"os"
	"runtime/debug"
	"testing"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // a search keeps much, and throws much away
	os.Exit(m.Run())
}
