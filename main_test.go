package holdfast_test

import (
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

var mutexKind = locktest.Kind{
	Name: "mutex",
	Lock: func(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker {
		return m.Mutex(name, opts...)
	},
	Async: func(l holdfast.Locker, ctx context.Context) <-chan holdfast.Result {
		return l.(*holdfast.Mutex).LockAsync(ctx)
	},
}

func TestMain(m *testing.M) {
	code := redistest.Main(m, locktest.Roles(mutexKind))
	if err := goleak.Find(); err != nil && code == 0 {
		os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

func TestMutex(t *testing.T) { locktest.Run(t, mutexKind) }
