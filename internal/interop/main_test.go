package interop

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// gate is the environment's variable that says whether the tests may be skipped: "require" makes a skip a failure.
const gate = "HOLDFAST_INTEROP"

func TestMain(m *testing.M) {
	redistest.RunRole(map[string]func(args []string){peerRole: rolePeer})
	os.Exit(m.Run())
}

// needsRedisson is called by each test first.
func needsRedisson(t *testing.T) {
	t.Helper()
	switch missing := missing(); {
	case missing == "":
	case os.Getenv(gate) == "require":
		t.Fatalf("%s, and %s=require", missing, gate)
	default:
		t.Skip(missing)
	}
}

// missing says why the tests cannot run; empty if they can.
func missing() string {
	if _, err := exec.LookPath("java"); err != nil {
		return "no java in PATH"
	}
	for _, l := range []line{current, old} {
		if _, err := os.Stat(l.jar()); err != nil {
			return fmt.Sprintf("%v; `make interop` builds it", err)
		}
	}
	return ""
}

// line is a line of Redisson releases, as interop/pom.xml knows it.
type line string

const (
	current line = "current"
	old     line = "old"
)

func (l line) jar() string {
	return filepath.Join("..", "..", "interop", "target", string(l), "redisson-peer.jar")
}
