package interop

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// gate says whether the tests may be skipped: "require" makes a skip a failure, "off"
// is for whoever has run them already.
const gate = "HOLDFAST_INTEROP"

func TestMain(m *testing.M) {
	redistest.RunRole(map[string]func(args []string){peerRole: rolePeer})
	if missing := missing(); missing != "" {
		fmt.Println("interop: skipped:", missing)
		if os.Getenv(gate) == "require" {
			fmt.Println("interop: but", gate, "requires it")
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// missing says why the tests cannot run; empty if they can.
func missing() string {
	if os.Getenv(gate) == "off" {
		return gate + "=off"
	}
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
