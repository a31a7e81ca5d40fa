package several

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestMain(m *testing.M) {
	locktest.Main(m, map[string]func([]string){callersRole: redlockCallers}, nil)
}
