package engine_test

import (
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestMain(m *testing.M) { locktest.Main(m, nil, nil) }

// inside is what the engine has of a lease.
func inside(l *holdfast.Lease) engine.Inside { return (*engine.Lease)(l).Inside() }

// via returns a manager behind a proxy of its own, and its server.
func via(t *testing.T) (*holdfast.Manager, *redistest.Proxy, *redistest.Server) {
	t.Helper()
	srv := redistest.Start(t)
	p := srv.Proxy(t)
	return locktest.ManagerFor(t, p.Client(t)), p, srv
}

// heldFor returns a manager behind a proxy and a lease of "a".
func heldFor(t *testing.T, opt holdfast.LockOption) (*holdfast.Manager, *redistest.Proxy, *redistest.Server, *holdfast.Lease) {
	t.Helper()
	m, p, srv := via(t)
	return m, p, srv, locktest.MustLock(t, m.Mutex("a", opt))
}
