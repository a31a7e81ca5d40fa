package telemetry

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/locktest/several"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// With a name mapper, errors, spans and log lines have the names as given.

// ways are calls that fail, of a lock that is free at first.
var ways = map[string]func(*testing.T, *renamed){
	"Lock times out": func(t *testing.T, r *renamed) {
		held := r.rival(t)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // Redis has to refuse it before, on a busy machine as well
		defer cancel()
		_, err := r.on(t, r.managers).Lock(ctx)
		r.wantGiven(t, "Lock", err, holdfast.ErrNotAcquired)
		locktest.MustUnlock(t, held)
	},
	"its context has ended": func(t *testing.T, r *renamed) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := r.on(t, r.managers).Lock(ctx)
		r.wantGiven(t, "Lock", err, holdfast.ErrNotAcquired)
	},
	"TryLock is refused": func(t *testing.T, r *renamed) {
		held := r.rival(t)
		_, err := r.on(t, r.managers).TryLock(t.Context())
		r.wantGiven(t, "TryLock", err, holdfast.ErrNotAcquired)
		locktest.MustUnlock(t, held)
	},
	"the lease is over": func(t *testing.T, r *renamed) {
		lease := locktest.MustLock(t, r.on(t, r.managers))
		locktest.MustUnlock(t, lease)
		r.wantGiven(t, "Unlock", lease.Unlock(t.Context()), holdfast.ErrNotHeld)
		r.wantGiven(t, "Extend", lease.Extend(t.Context(), time.Minute), holdfast.ErrNotHeld)
	},
	"it is deleted": func(t *testing.T, r *renamed) {
		lease := r.taken(t, r.on(t, r.managers, holdfast.WithFixedLease(time.Minute)))
		r.remove(t)
		r.wantGiven(t, "Unlock", locktest.Unlock(lease), holdfast.ErrLeaseLost)
		r.loses(holdfast.LostDeleted, len(r.of))
	},
	"it is deleted, and Close finds it": func(t *testing.T, r *renamed) {
		lease := r.taken(t, r.on(t, r.managers, holdfast.WithFixedLease(time.Minute)))
		r.remove(t)
		for _, m := range r.managers {
			_ = m.Close(t.Context())
		}
		if err := locktest.Unlock(lease); !errors.Is(err, holdfast.ErrLeaseLost) && !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("Unlock: %v", err)
		}
		r.loses(holdfast.LostDeleted, len(r.of))
		r.lost = r.lost[:len(r.of)] // the holder of a whole has closed it
	},
	"it is stolen": func(t *testing.T, r *renamed) {
		lease := r.taken(t, r.on(t, r.managers, holdfast.WithLease(6*time.Second)))
		r.remove(t)
		thief := r.rival(t)
		<-lease.Done()
		r.wantGiven(t, "Err", lease.Err(), holdfast.ErrLeaseLost)
		r.wantGiven(t, "Unlock", locktest.Unlock(lease), holdfast.ErrLeaseLost)
		locktest.MustUnlock(t, thief)
		r.loses("", len(r.of)) // a renewal has found it, or the deadline came before
	},
	"ForceUnlock ends it": func(t *testing.T, r *renamed) {
		lease := r.taken(t, r.on(t, r.managers, holdfast.WithFixedLease(time.Minute)))
		parts := len(r.managers)/2 + 1 // as many as end the lease: the others are then given back
		for i, name := range given[:parts] {
			redistest.Must(t, locktest.UntilAnswered(func() error { _, err := r.managers[i%len(r.managers)].ForceUnlock(t.Context(), name); return err }))
		}
		<-lease.Done()
		r.wantGiven(t, "Unlock", locktest.Unlock(lease), holdfast.ErrLeaseLost)
		r.loses(holdfast.LostDeleted, parts)
	},
	"it is lost to an Extend": func(t *testing.T, r *renamed) {
		lease := r.taken(t, r.on(t, r.managers, holdfast.WithFixedLease(time.Minute)))
		r.remove(t)
		r.wantGiven(t, "Extend", locktest.UntilAnswered(func() error { return lease.Extend(t.Context(), time.Hour) }), holdfast.ErrLeaseLost)
		r.wantGiven(t, "Unlock", locktest.Unlock(lease), holdfast.ErrLeaseLost)
		r.loses(holdfast.LostDeleted, len(r.of))
	},
	"its time is over": func(t *testing.T, r *renamed) {
		lease := locktest.MustLock(t, r.on(t, r.managers, holdfast.WithFixedLease(3*time.Second)))
		r.held(t)
		<-lease.Done()
		r.wantGiven(t, "Err", lease.Err(), holdfast.ErrLeaseLost)
		r.told(t, "holdfast: lease lost") // of each part: Unlock may give one back before its time is over
		r.wantGiven(t, "Unlock", locktest.Unlock(lease), holdfast.ErrLeaseLost)
		r.loses(holdfast.LostDeadline, len(r.of))
	},
	"it is held for too long": func(t *testing.T, r *renamed) {
		lease := locktest.MustLock(t, r.on(t, r.managers, holdfast.WithLease(5*time.Second), holdfast.WithMaxHold(5*time.Second)))
		<-lease.Done()
		r.told(t, "holdfast: maximum hold time reached")
		locktest.WantErr(t, locktest.Unlock(lease), holdfast.ErrMaxHold, nil)
	},
	"the key is of another kind": func(t *testing.T, r *renamed) {
		r.each(func(srv *redistest.Server, key string) { srv.Admin().Set(t.Context(), key, "x", 0) })
		for i, m := range r.managers {
			_, err := m.ForceUnlock(t.Context(), given[i%len(r.of)])
			r.wantGiven(t, "ForceUnlock", err, holdfast.ErrWrongKind)
		}
		_, err := r.on(t, r.managers).TryLock(t.Context())
		r.wantGiven(t, "TryLock", err, holdfast.ErrWrongKind)
		_, err = r.on(t, r.managers).Lock(t.Context())
		r.wantGiven(t, "Lock", err, holdfast.ErrWrongKind)
		r.remove(t)
	},
	"Redis does not answer": func(t *testing.T, r *renamed) {
		lock := r.on(t, r.managers)
		lease := locktest.MustLock(t, lock)
		r.held(t)
		for _, srv := range r.all {
			srv.Pause()
		}
		r.wantGiven(t, "Extend", lease.Extend(t.Context(), time.Minute), holdfast.ErrUnavailable)
		r.wantGiven(t, "Unlock", lease.Unlock(t.Context()), holdfast.ErrUnavailable)
		_, err := lock.TryLock(t.Context())
		r.wantGiven(t, "TryLock", err, holdfast.ErrUnavailable)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err = lock.Lock(ctx)
		r.wantGiven(t, "Lock", err, holdfast.ErrUnavailable)
		for i, m := range r.managers {
			_, err := m.Inspect(ctx, given[i%len(r.of)])
			r.wantGiven(t, "Inspect", err, holdfast.ErrUnavailable)
			_, err = m.ForceUnlock(ctx, given[i%len(r.of)])
			r.wantGiven(t, "ForceUnlock", err, holdfast.ErrUnavailable)
		}
		for _, srv := range r.all {
			srv.Resume()
		}
	},
	"the release is given up": func(t *testing.T, r *renamed) {
		user := func(change string) {
			for _, srv := range r.all {
				redistest.Must(t, srv.Admin().Do(t.Context(), "ACL", "SETUSER", "default", change).Err())
			}
		}
		lease := locktest.MustLock(t, r.on(t, r.managers, holdfast.WithFixedLease(4*time.Second))) // a busy machine takes a part of it
		r.held(t)
		user("resetkeys")
		r.wantGiven(t, "Unlock", lease.Unlock(t.Context()), holdfast.ErrUnavailable)
		r.told(t, "holdfast: release given up")
		user("~*")
	},
	"Do cannot release it": func(t *testing.T, r *renamed) {
		err := holdfast.Do(t.Context(), r.on(t, r.managers), func(context.Context, *holdfast.Lease) error {
			r.held(t)
			for _, srv := range r.all {
				srv.Pause()
			}
			return nil
		})
		r.wantGiven(t, "Do", err, holdfast.ErrNotReleased)
		for _, srv := range r.all {
			srv.Resume()
		}
	},
	"the manager is closed": func(t *testing.T, r *renamed) {
		lock := r.on(t, r.managers)
		for _, m := range r.managers {
			_ = m.Close(t.Context())
		}
		_, err := lock.TryLock(t.Context())
		r.wantGiven(t, "TryLock", err, holdfast.ErrClosed)
		_, err = lock.Lock(t.Context())
		r.wantGiven(t, "Lock", err, holdfast.ErrClosed)
		for i, m := range r.managers {
			_, err = m.Inspect(t.Context(), given[i%len(r.of)])
			r.wantGiven(t, "Inspect", err, holdfast.ErrClosed)
			_, err = m.ForceUnlock(t.Context(), given[i%len(r.of)])
			r.wantGiven(t, "ForceUnlock", err, holdfast.ErrClosed)
		}
	},
}

// Errors that name a lock do so as the caller gave it; what is wrong with the mapped name, or with a key, is said
// behind that. So do spans and log lines. Each lost lease is logged once, with the reason, whatever finds that it is lost.
func TestErrors_NameTheLockAsGiven(t *testing.T) {
	toMulti := func(locks ...holdfast.Locker) (holdfast.Locker, error) { return holdfast.NewMulti(locks...) }
	toRedlock := func(locks ...holdfast.Locker) (holdfast.Locker, error) { return holdfast.NewRedlock(locks...) }
	for kind, k := range map[string]struct {
		of      []makerWith
		group   func(...holdfast.Locker) (holdfast.Locker, error)
		servers int
	}{
		"mutex":   {[]makerWith{mutexWith}, nil, 1},
		"fair":    {[]makerWith{fairWith}, nil, 1},
		"write":   {[]makerWith{writeWith}, nil, 1},
		"read":    {[]makerWith{readWith}, nil, 1},
		"multi":   {[]makerWith{mutexWith, fairWith, writeWith}, toMulti, 1},
		"sweep":   {[]makerWith{mutexWith, mutexWith, mutexWith}, toMulti, 1},
		"redlock": {[]makerWith{mutexWith, mutexWith, mutexWith}, toRedlock, 3},
	} {
		for way, fails := range ways {
			t.Run(kind+", "+way, redistest.Worlds(func(t *testing.T) {
				r := newRenamed(t, k.of, k.group, several.Servers(t, k.servers))
				if kind == "read" {
					r.rivals = []makerWith{writeWith}
				}
				fails(t, r)
				r.wantGivenElsewhere(t, way == "the key is of another kind")
			}))
		}
	}
}

// A mapper can make one lock of several names. Each caller is told of the name that it has given.
func TestErrors_TwoNamesOfOneLock(t *testing.T) {
	for kind, of := range map[string]makerWith{"mutex": mutexWith, "fair": fairWith, "write": writeWith, "read": readWith} {
		t.Run(kind, func(t *testing.T) {
			redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
				log, option := locktest.Logged()
				m := locktest.ManagerOn(t, srv, option, holdfast.WithNameMapper(strings.ToLower))
				// attempt returns a lease of LOCK, beside or behind one of lock.
				attempt := func() (lease *holdfast.Lease) {
					first := locktest.MustLock(t, of(m, "lock"))
					got := locktest.Waits(t, of(m, "LOCK"))
					if kind == "read" {
						lease = got()
					} else {
						redistest.Eventually(t, locktest.Patience, "it waits", func() bool { return m.Stats().Waiting == 1 })
					}
					locktest.MustUnlock(t, first)
					if lease == nil {
						lease = got()
					}
					return lease
				}
				// second returns one of which no request was sent twice, as renamed.taken does.
				second := func() *holdfast.Lease {
					for {
						before := m.Stats().Troubles
						lease := attempt()
						if m.Stats().Troubles == before {
							return lease
						}
						locktest.MustUnlock(t, lease)
					}
				}
				says := func(what string, err, is error) {
					t.Helper()
					if !errors.Is(err, is) || !strings.Contains(err.Error(), `"LOCK"`) {
						t.Errorf("%s: %v", what, err)
					}
				}
				lease := second()
				srv.Admin().Del(t.Context(), "lock")
				says("lost to Unlock", locktest.Unlock(lease), holdfast.ErrLeaseLost)
				lease = second()
				redistest.Must(t, locktest.ErrOf(m.ForceUnlock(t.Context(), "Lock")))
				<-lease.Done()
				says("Err", lease.Err(), holdfast.ErrLeaseLost)
				says("lost before Unlock", locktest.Unlock(lease), holdfast.ErrLeaseLost)
				redistest.Eventually(t, locktest.Patience, "both are told", func() bool { return len(log.With("lease lost lock=LOCK ")) == 2 })
				lease = second()
				srv.Pause()
				says("not answered", lease.Unlock(t.Context()), holdfast.ErrUnavailable)
				says("nor again", lease.Unlock(t.Context()), holdfast.ErrUnavailable)
				srv.Resume()
			})
		})
	}
}

// A downgrade names the lock as each caller has given it: the one that unlocks the write side, and the one that keeps the
// read side.
func TestErrors_TwoNamesOfADowngrade(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		log, option := locktest.Logged()
		mapper := holdfast.WithNameMapper(func(name string) string { return strings.ToLower(strings.Trim(name, "-")) })
		m, p := locktest.ManagerVia(t, srv, option, mapper, holdfast.WithLease(3*time.Second))
		says := func(what string, err, is error, name string) {
			t.Helper()
			lost := (*holdfast.LostError)(nil)
			if !errors.Is(err, is) || !strings.Contains(err.Error(), `"`+name+`"`) || errors.As(err, &lost) && lost.Name != name {
				t.Errorf("%s: %v", what, err)
			}
		}
		sides := func() (write, read *holdfast.Lease) {
			first := locktest.MustLock(t, m.RWMutex("a")) // the lock is known by this name
			got := locktest.Waits(t, m.RWMutex("A"))
			redistest.Eventually(t, locktest.Patience, "it waits", func() bool { return m.Stats().Waiting == 1 })
			locktest.MustUnlock(t, first)
			write = got()
			read, err := m.RWMutex("-a-").RLock(write.Context(t.Context()))
			redistest.Must(t, err)
			return write, read
		}
		write, read := sides()
		srv.Admin().Del(t.Context(), "a")
		says("Unlock of what is deleted", locktest.Unlock(write), holdfast.ErrLeaseLost, "A")
		says("Err", read.Err(), holdfast.ErrLeaseLost, "-a-")
		says("Unlock of the read side", locktest.Unlock(read), holdfast.ErrLeaseLost, "-a-")

		write, read = sides()
		p.LoseRequest(locktest.ScriptOn("a", "rw_downgrade"), math.MaxInt)
		says("Unlock that is not answered", write.Unlock(t.Context()), holdfast.ErrUnavailable, "A")
		says("Extend before the answer", read.Extend(t.Context(), time.Minute), holdfast.ErrUnavailable, "-a-")
		<-read.Done()
		says("Unlock when the time is over", write.Unlock(t.Context()), holdfast.ErrUnavailable, "A")
		says("Unlock of the read side", locktest.Unlock(read), holdfast.ErrLeaseLost, "-a-")
		p.Heal()
		redistest.Eventually(t, locktest.Patience, "both are told", func() bool { return len(log.With("lease lost lock=-a- ")) == 2 })
		if got := append(log.With("lock=a "), log.With(`"a"`)...); len(got) > 0 {
			t.Errorf("%q", got)
		}
	})
}
