// Package docs has the tests of what the documents say, and of texts that users read: that links lead somewhere, snippets run,
// and names, constants and tables are those of the code. They run in the module's directory.
package docs

import (
	"fmt"
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

const module = "github.com/holdfast-go/holdfast"

// addr is where a Redis listens that TestMain starts.
var addr string

func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	locktest.Main(m, nil, func(tb testing.TB) { addr = locktest.AnyServer(tb) })
}
