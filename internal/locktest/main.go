package locktest

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/vredis"
)

// Main is what TestMain of a package calls: it runs the tests, or the role that this process was started for, and exits. A
// goroutine that is left behind is a failure. What start starts, if it is not nil, it may stop in a Cleanup.
func Main(m *testing.M, roles map[string]func(args []string), start func(tb testing.TB)) {
	redistest.RunRole(roles)
	flag.Parse()
	tb := &mainTB{}
	if start != nil {
		start(tb)
	}
	code := m.Run()
	tb.finish()
	if err := redistest.Leaked(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// AnyServer returns the address of a server without a password: a real one, or with -short one inside the process.
func AnyServer(tb testing.TB) string {
	if !testing.Short() {
		return redistest.Start(tb, redistest.WithoutPassword()).Addr()
	}
	embedded, err := vredis.Listen(vredis.Options{})
	redistest.Must(tb, err)
	tb.Cleanup(embedded.Close)
	return embedded.Addr()
}

// mainTB lets TestMain start a server: what redistest needs of a TB.
type mainTB struct {
	testing.TB
	cleanups []func()
}

func (tb *mainTB) Helper()                   {}
func (tb *mainTB) Failed() bool              { return false }
func (tb *mainTB) Name() string              { return "TestMain" }
func (tb *mainTB) Cleanup(f func())          { tb.cleanups = append(tb.cleanups, f) }
func (tb *mainTB) Log(args ...any)           { fmt.Fprintln(os.Stderr, args...) }
func (tb *mainTB) Logf(f string, a ...any)   { fmt.Fprintf(os.Stderr, f+"\n", a...) }
func (tb *mainTB) Error(args ...any)         { tb.Fatal(args...) }
func (tb *mainTB) Errorf(f string, a ...any) { tb.Fatalf(f, a...) }
func (tb *mainTB) Fatal(args ...any)         { tb.Log(args...); tb.finish(); os.Exit(1) }
func (tb *mainTB) Fatalf(f string, a ...any) { tb.Logf(f, a...); tb.finish(); os.Exit(1) }

func (tb *mainTB) TempDir() string {
	dir, err := os.MkdirTemp("", "holdfast")
	redistest.Must(tb, err)
	tb.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (tb *mainTB) finish() {
	for i := len(tb.cleanups) - 1; i >= 0; i-- {
		tb.cleanups[i]()
	}
	tb.cleanups = nil
}
