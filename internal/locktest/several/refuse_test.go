package several

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// AC-77 and others: what cannot be one lock is refused before anything is sent.
func TestMulti_RefusesBadLocks(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv)
		a, b := m.Mutex("a"), m.Mutex("b")
		for name, locks := range map[string][]holdfast.Locker{
			"none":             {},
			"nil":              {a, nil},
			"typed nil":        {a, (*holdfast.Mutex)(nil)},
			"nobody's side":    {a, (*holdfast.RWMutex)(nil).RLocker()},
			"twice":            {a, b, m.Mutex("a")},
			"two kinds":        {a, m.FairMutex("a")},
			"both sides":       {m.RWMutex("x"), m.RWMutex("x").RLocker()},
			"twice in a multi": {a, Multi(t, b, m.Mutex("a"))},
		} {
			if _, err := holdfast.NewMulti(locks...); !errors.Is(err, holdfast.ErrInvalidOption) {
				t.Errorf("%s: %v, want ErrInvalidOption", name, err)
			}
		}
		bad := Multi(t, a, m.Mutex(""))
		if _, err := bad.Lock(t.Context()); !errors.Is(err, holdfast.ErrInvalidName) {
			t.Errorf("a bad name: %v", err)
		}
		srv.RequireNoKeys(t)
	})
}

func TestRedlock_RefusesBadLocks(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := Servers(t, 3)
		c := all.Candidate(t)
		a, b, d := c.Managers[0], c.Managers[1], c.Managers[2]
		for name, locks := range map[string][]holdfast.Locker{
			"two":         {a.Mutex("x"), b.Mutex("x")},
			"one manager": {a.Mutex("x"), b.Mutex("x"), b.Mutex("y")},
			"nil":         {a.Mutex("x"), b.Mutex("x"), nil},
			"a multi":     {a.Mutex("x"), b.Mutex("x"), Multi(t, d.Mutex("x"))},
		} {
			if _, err := holdfast.NewRedlock(locks...); !errors.Is(err, holdfast.ErrInvalidOption) {
				t.Errorf("%s: %v", name, err)
			}
		}
		bad, err := holdfast.NewRedlock(a.Mutex("x"), b.Mutex("x"), d.Mutex(""))
		redistest.Must(t, err)
		_, err = bad.Lock(t.Context())
		locktest.WantErr(t, err, holdfast.ErrInvalidName, holdfast.ErrUnavailable)
		for i, srv := range all {
			srv.Admin().Set(t.Context(), "x", i, 0)
		}
		wrong, err := holdfast.NewRedlock(a.Mutex("x"), b.Mutex("x"), d.Mutex("x"))
		redistest.Must(t, err)
		_, err = wrong.Lock(t.Context())
		locktest.WantErr(t, err, holdfast.ErrWrongKind, holdfast.ErrUnavailable)
	})
}

// A majority of members of which some are shared would exclude no other caller.
func TestRedlock_RefusesReadersBesideOthers(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := Servers(t, 3)
		c := all.Candidate(t)
		a, b, d := c.Managers[0], c.Managers[1], c.Managers[2]
		for name, locks := range map[string][]holdfast.Locker{
			"reader and writers":  {readSide(a), writeSide(b), writeSide(d)},
			"readers and a mutex": {readSide(a), readSide(b), d.Mutex(Vote)},
			"both sides":          {writeSide(a), readSide(b), fairSide(d)},
		} {
			_, err := holdfast.NewRedlock(locks...)
			locktest.WantErr(t, err, holdfast.ErrInvalidOption, nil)
			if err == nil {
				t.Errorf("%s is taken", name)
			}
		}
		if _, err := holdfast.NewRedlock(a.Mutex(Vote), fairSide(b), writeSide(d)); err != nil {
			t.Errorf("all exclusive: %v", err)
		}
		// A lock of another kind stands in the way, at a majority or at one member.
		held := locktest.MustLock(t, c)
		_, err := all.CandidateFor(t, writeSide).Lock(t.Context())
		locktest.WantErr(t, err, holdfast.ErrWrongKind, holdfast.ErrNotAcquired)
		locktest.MustUnlock(t, held)
		for _, srv := range all {
			redistest.Eventually(t, locktest.Patience, "released", func() bool { return len(locktest.LastingKeys(srv)) == 0 })
		}
	})
}

// TryLock asks one question and waits for no other owner. Its error is that of the lock that could not be taken, wherever it stands
// among the others, and what was taken before is given back.
func TestMulti_NamesWhatCannotBeTaken(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, other := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv)
		names := []string{"a", "b", "c"}
		l := Multi(t, m.Mutex("a"), m.FairMutex("b"), m.Mutex("c"))
		for _, name := range names {
			for why, c := range map[string]struct {
				obstruct func() (clear func())
				is       error
			}{
				"held": {func() func() {
					held := locktest.MustLock(t, other.Mutex(name))
					return func() { locktest.MustUnlock(t, held) }
				}, holdfast.ErrNotAcquired},
				"held without a TTL": {func() func() {
					srv.Admin().HSet(t.Context(), name, "00000000-0000-4000-8000-000000000000:1", 1)
					return func() { srv.Admin().Del(t.Context(), name) }
				}, holdfast.ErrNotAcquired},
				"a string": {func() func() {
					srv.Admin().Set(t.Context(), name, "no lock", 0)
					return func() { srv.Admin().Del(t.Context(), name) }
				}, holdfast.ErrWrongKind},
				"a read-write lock": {func() func() {
					held := locktest.MustLock(t, other.RWMutex(name))
					return func() { locktest.MustUnlock(t, held) }
				}, holdfast.ErrWrongKind},
				"tombstones of another kind": {func() func() {
					srv.Admin().Set(t.Context(), "holdfast_tombstones:{"+name+"}", "no tombstones", 0)
					return func() { srv.Admin().Del(t.Context(), "holdfast_tombstones:{"+name+"}") }
				}, holdfast.ErrWrongKind},
			} {
				clear := c.obstruct()
				tries := []func(context.Context) (*holdfast.Lease, error){l.TryLock}
				if c.is == holdfast.ErrWrongKind {
					tries = append(tries, l.Lock)
				}
				for i, try := range tries {
					ask := func() error { _, err := try(t.Context()); return err }
					err := ask()
					if c.is != holdfast.ErrUnavailable {
						err = locktest.UntilAnswered(ask)
					}
					if s := m.Stats(); i == 0 && s.Polls+s.Wakeups != 0 {
						t.Errorf("%s is %s: %d polls", name, why, s.Polls)
					}
					if want := fmt.Sprintf("%v: %q", c.is, name); err == nil || !strings.HasPrefix(err.Error(), want) {
						t.Errorf("%s is %s: %v, want %s", name, why, err, want)
					}
				}
				clear()
				if n := srv.Admin().Exists(t.Context(), names...).Val(); n != 0 {
					t.Fatalf("%s was %s: %d locks are left", name, why, n)
				}
			}
		}
		locktest.MustUnlock(t, locktest.MustLock(t, l))
	})
}

// What cannot succeed ends Lock, also if some of the locks have been taken by then.
func TestMulti_EndsWithWhatCannotSucceed(t *testing.T) {
	t.Run("wrong kind", func(t *testing.T) {
		redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
			m, other := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv)
			srv.Admin().Set(t.Context(), "b", "no lock", 0)
			held := locktest.MustLock(t, other.Mutex("a"))
			failed := redistest.Begin(func() error { _, err := Multi(t, m.Mutex("a"), m.Mutex("b")).Lock(t.Context()); return err })
			locktest.Queued(t, srv, "redisson_lock_queue:{a}", 1)
			locktest.MustUnlock(t, held)
			locktest.WantErr(t, redistest.Next(t, failed, "it goes on"), holdfast.ErrWrongKind, nil)
		})
	})
	t.Run("closed", func(t *testing.T) {
		redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
			m, closing, other := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv)
			locktest.MustLock(t, other.Mutex("d"))
			failed := redistest.Begin(func() error { _, err := Multi(t, m.Mutex("c"), closing.Mutex("d")).Lock(t.Context()); return err })
			locktest.Queued(t, srv, "redisson_lock_queue:{d}", 1)
			redistest.Must(t, closing.Close(t.Context()))
			locktest.WantErr(t, redistest.Next(t, failed, "it goes on"), holdfast.ErrClosed, nil)
		})
	})
}

// What its owner would wait for itself is said before it waits for others.
func TestMulti_WouldDeadlockBehindOthers(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, other := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv)
		busy := locktest.MustLock(t, other.Mutex("a", holdfast.WithFencing()))
		for name, c := range map[string]struct{ has, wants holdfast.Locker }{
			"write side of what it reads": {m.RWMutex("b").RLocker(), m.RWMutex("b")},
			"the other kind":              {m.Mutex("b"), m.FairMutex("b")},
		} {
			own := locktest.MustLock(t, c.has)
			l := Multi(t, m.Mutex("a", holdfast.WithFencing()), c.wants)
			for _, lock := range []func(context.Context) (*holdfast.Lease, error){l.Lock, l.TryLock} {
				failed := redistest.Begin(func() error { _, err := lock(own.Context(t.Context())); return err })
				if err := redistest.Next(t, failed, "it goes on"); !errors.Is(err, holdfast.ErrWouldDeadlock) {
					t.Errorf("%s: %v", name, err)
				}
			}
			locktest.MustUnlock(t, own)
		}
		locktest.MustUnlock(t, busy)
	})
}

// A majority that denies the lock ends Lock, as a single server that does.
func TestRedlock_DeniedEndsLock(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := Servers(t, 3)
		var clients []*redis.Client
		for _, srv := range all {
			clients = append(clients, srv.ClientWith(t, func(o *redis.Options) { o.Password = "wrong" }))
		}
		failed := redistest.Begin(func() error { _, err := CandidateOn(t, clients, Mutexes).Lock(t.Context()); return err })
		locktest.WantErr(t, redistest.Next(t, failed, "it goes on"), holdfast.ErrUnavailable, nil)
	})
}
