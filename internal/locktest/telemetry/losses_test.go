package telemetry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/locktest/several"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// maker makes a lock.
type maker func(m *holdfast.Manager, name string) holdfast.Locker

func mutexOf(m *holdfast.Manager, name string) holdfast.Locker { return m.Mutex(name) }
func fairOf(m *holdfast.Manager, name string) holdfast.Locker  { return m.FairMutex(name) }
func writeOf(m *holdfast.Manager, name string) holdfast.Locker { return m.RWMutex(name) }
func readOf(m *holdfast.Manager, name string) holdfast.Locker  { return m.RWMutex(name).RLocker() }

// losing is a lease that is about to be lost, and whom that concerns.
type losing struct {
	lease    *holdfast.Lease
	managers []*holdfast.Manager
	servers  []*redistest.Server // of each manager
	parts    []string            // what the locks in Redis are called, in the order of managers
	thieves  []maker             // locks that exclude them, in their order
	whole    string              // what a Redlock that has lost its majority is called; else empty
}

// each calls do for all locks that the lease consists of.
func (l *losing) each(do func(m *holdfast.Manager, srv *redistest.Server, name string)) {
	for i, name := range l.parts {
		at := min(i, len(l.managers)-1)
		do(l.managers[at], l.servers[at], name)
	}
}

// Each lost lease is logged once, with its name and the reason, whatever finds that it is lost.
func TestLosses_AreLoggedOnce(t *testing.T) {
	t.Parallel()
	all := several.Servers(t, 3)
	kinds := map[string][]maker{
		"Mutex": {mutexOf}, "FairMutex": {fairOf}, "read": {readOf}, "write": {writeOf},
		"Multi": {mutexOf, fairOf, writeOf}, "Redlock": {mutexOf, mutexOf, mutexOf},
	}
	remove := func(t *testing.T, l *losing) {
		l.each(func(_ *holdfast.Manager, srv *redistest.Server, name string) { srv.Admin().Del(t.Context(), name) })
	}
	fixed := holdfast.WithFixedLease(time.Minute)
	for finder, f := range map[string]struct {
		lease  holdfast.LockOption
		reason holdfast.LostReason // empty: either of two, by the moment
		find   func(t *testing.T, l *losing)
	}{
		"Unlock": {fixed, holdfast.LostDeleted, func(t *testing.T, l *losing) {
			remove(t, l)
			locktest.WantErr(t, locktest.Unlock(l.lease), holdfast.ErrLeaseLost, nil)
		}},
		"Extend": {fixed, holdfast.LostDeleted, func(t *testing.T, l *losing) {
			remove(t, l)
			locktest.WantErr(t, locktest.UntilAnswered(func() error { return l.lease.Extend(t.Context(), time.Minute) }), holdfast.ErrLeaseLost, nil)
		}},
		"Close": {fixed, holdfast.LostDeleted, func(t *testing.T, l *losing) {
			remove(t, l)
			l.whole = "" // its holder has closed it
		}},
		"deadline": {holdfast.WithFixedLease(300 * time.Millisecond), holdfast.LostDeadline, func(t *testing.T, l *losing) {
			redistest.Eventually(t, locktest.Patience, "all have ended", func() bool { // else Unlock gives the last one back in time
				n := 0
				for _, m := range l.managers {
					n += int(m.Stats().Lost)
				}
				return n == len(l.parts)
			})
			<-l.lease.Done()
		}},
		"renewal": {holdfast.WithLease(6 * time.Second), "", func(t *testing.T, l *losing) {
			remove(t, l)
			for i, name := range l.parts { // or a Redlock would take each member again
				locktest.MustLock(t, l.thieves[i](locktest.ManagerOn(t, l.servers[min(i, len(l.servers)-1)]), name))
			}
			<-l.lease.Done()
		}},
		"ForceUnlock": {fixed, holdfast.LostDeleted, func(t *testing.T, l *losing) {
			l.parts = l.parts[:len(l.managers)/2+1] // as many as end the lease: the others are then given back
			l.each(func(m *holdfast.Manager, _ *redistest.Server, name string) {
				if err := locktest.UntilAnswered(func() error { _, err := m.ForceUnlock(t.Context(), name); return err }); err != nil {
					t.Error(err)
				}
			})
			<-l.lease.Done()
		}},
	} {
		for kind, of := range kinds {
			t.Run(finder+"/"+kind, func(t *testing.T) {
				t.Parallel()
				log, option := locktest.Logged()
				l := &losing{thieves: of, servers: all[:1]}
				switch kind {
				case "read":
					l.thieves = []maker{writeOf}
				case "Redlock":
					l.servers = all
				}
				for _, srv := range l.servers {
					l.managers = append(l.managers, locktest.ManagerOn(t, srv, option, f.lease))
				}
				var locks []holdfast.Locker
				for i, make := range of {
					l.parts = append(l.parts, fmt.Sprintf("%s:%s:%d", finder, kind, i))
					locks = append(locks, make(l.managers[min(i, len(l.managers)-1)], l.parts[i]))
				}
				lock := locks[0]
				switch kind {
				case "Multi":
					lock = several.Multi(t, locks...)
				case "Redlock":
					l.whole = strings.Join(l.parts, "+")
					lock, _ = holdfast.NewRedlock(locks...)
				}
				l.lease = locktest.MustLock(t, lock)
				l.each(func(m *holdfast.Manager, _ *redistest.Server, _ string) { // a Redlock's last one comes later
					redistest.Eventually(t, locktest.Patience, "it is held", func() bool { return m.Stats().Held > 0 })
				})
				f.find(t, l)
				for _, m := range l.managers {
					if finder == "Close" {
						_ = m.Close(t.Context())
					}
				}
				if err := locktest.Unlock(l.lease); !errors.Is(err, holdfast.ErrLeaseLost) && !errors.Is(err, holdfast.ErrClosed) {
					t.Errorf("Unlock: %v", err)
				}
				for _, m := range l.managers {
					_ = m.Close(context.Background())
				}
				want := l.parts
				if l.whole != "" {
					want = append(slices.Clone(want), l.whole)
				}
				for _, name := range want {
					line := "WARN holdfast: lease lost lock=" + name + " reason=" + string(f.reason)
					if got := log.With(line); len(got) != 1 {
						t.Errorf("%q, want one %q", got, line)
					}
				}
				if got := log.With("lease lost"); len(got) != len(want) {
					t.Errorf("%q, want %d lines", got, len(want))
				}
			})
		}
	}
}
