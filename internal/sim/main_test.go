package sim

import (
	"os"
	"testing"

	"github.com/redis/go-redis/v9/logging"
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis reports each connection that it does not get
	code := m.Run()
	_ = os.RemoveAll(built.dir)
	os.Exit(code)
}
