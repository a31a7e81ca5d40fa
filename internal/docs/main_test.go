// Package docs has the tests of what the documents say, and of texts that users read: that links lead somewhere, snippets run,
// and names, constants and tables are those of the code. They run in the module's directory.
package docs

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

const module = "github.com/holdfast-go/holdfast"

// addr is where a Redis listens that TestMain starts.
var addr string

// inModule tells the go command in which directory the tests are: it reuses a result only if the files that the tests have read are
// unchanged, and does not hear of what TestMain does before they begin.
var inModule = sync.OnceFunc(func() { _ = os.Chdir(".") })

func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	locktest.Main(m, nil, func(tb testing.TB) { addr = locktest.AnyServer(tb) })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
