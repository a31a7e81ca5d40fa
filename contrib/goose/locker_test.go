package holdfastgoose_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"github.com/pressly/goose/v3/lock/locktesting"
	_ "modernc.org/sqlite"

	"github.com/holdfast-go/holdfast"
	holdfastgoose "github.com/holdfast-go/holdfast/contrib/goose"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestMain(m *testing.M) {
	os.Exit(redistest.Main(m, map[string]func([]string){"migrator": func(args []string) {
		db, err := open(args[1])
		panicOn(err)
		p, err := provider(db, holdfastgoose.NewLocker(locktest.ManagerOfRole(args[0]).Mutex("migrations")), func() {
			fmt.Println("migrating")
			bufio.NewScanner(os.Stdin).Scan() // until the process is killed
		})
		panicOn(err)
		_, err = p.Up(context.Background())
		panicOn(err)
	}}))
}

func panicOn(err error) {
	if err != nil {
		panic(err)
	}
}

func open(file string) (*sql.DB, error) {
	return sql.Open("sqlite", file+"?_pragma=busy_timeout(10000)")
}

// provider returns one with two migrations. The second calls during.
func provider(db *sql.DB, l lock.Locker, during func()) (*goose.Provider, error) {
	first := func(ctx context.Context, db *sql.DB) error {
		_, err := db.ExecContext(ctx, "CREATE TABLE stock (left INTEGER)")
		return err
	}
	second := func(ctx context.Context, db *sql.DB) error {
		during()
		_, err := db.ExecContext(ctx, "INSERT INTO stock VALUES (10)")
		return err
	}
	return goose.NewProvider(goose.DialectSQLite3, db, nil, goose.WithLocker(l), goose.WithDisableGlobalRegistry(true), goose.WithGoMigrations(
		goose.NewGoMigration(1, &goose.GoFunc{RunDB: first}, nil),
		goose.NewGoMigration(2, &goose.GoFunc{RunDB: second}, nil)))
}

type world struct {
	t    *testing.T
	srv  *redistest.Server
	file string
}

func newWorld(t *testing.T) *world {
	return &world{t, redistest.Start(t, redistest.WithoutPassword()), filepath.Join(t.TempDir(), "shop.db")}
}

// locker returns one of another process.
func (w *world) locker(opts ...holdfast.LockOption) lock.Locker {
	w.t.Helper()
	return holdfastgoose.NewLocker(locktest.ManagerAsIs(w.t, w.srv.Client(w.t)).Mutex("migrations", opts...))
}

func (w *world) provider(t *testing.T, l lock.Locker, during func()) *goose.Provider {
	t.Helper()
	db, err := open(w.file)
	redistest.Must(t, err)
	t.Cleanup(func() { db.Close() })
	p, err := provider(db, l, during)
	redistest.Must(t, err)
	return p
}

// wantUp applies migrations: n, and with an error.
func (w *world) wantUp(p *goose.Provider, n int, want error) {
	w.t.Helper()
	results, err := p.Up(w.t.Context())
	if len(results) != n || !errors.Is(err, want) {
		w.t.Errorf("Up: %d migrations, %v; want %d, %v", len(results), err, n, want)
	}
}

func nothing() {}

func TestLocker_PassesGoosesOwnTests(t *testing.T) {
	t.Run("processes", func(t *testing.T) {
		w := newWorld(t)
		locktesting.TestProviderLocking(t, func(t *testing.T) *goose.Provider { return w.provider(t, w.locker(), nothing) })
	})
	t.Run("shared", func(t *testing.T) {
		w := newWorld(t)
		l := w.locker()
		locktesting.TestProviderLocking(t, func(t *testing.T) *goose.Provider { return w.provider(t, l, nothing) })
	})
	t.Run("concurrent", func(t *testing.T) {
		w := newWorld(t)
		locktesting.TestConcurrentLocking(t, nil, func(*testing.T) lock.Locker { return w.locker() }, 2*time.Second)
	})
	t.Run("concurrent, shared", func(t *testing.T) {
		l := newWorld(t).locker()
		locktesting.TestConcurrentLocking(t, nil, func(*testing.T) lock.Locker { return l }, 2*time.Second)
	})
}

func TestLocker_RedisAwayAtTheStart(t *testing.T) {
	w := newWorld(t)
	p := w.provider(t, w.locker(holdfast.WithWait(100*time.Millisecond)), nothing)
	w.srv.Kill()
	w.wantUp(p, 0, holdfast.ErrUnavailable)
	w.srv.Restart()
	redistest.Must(t, w.srv.Admin().Ping(t.Context()).Err())
	w.wantUp(w.provider(t, w.locker(), nothing), 2, nil)
	w.wantUp(p, 0, nil)
}

// goose goes on after a loss, and its caller learns of it.
func TestLocker_RedisAwayInTheMiddle(t *testing.T) {
	w := newWorld(t)
	l := w.locker(holdfast.WithLease(500 * time.Millisecond))
	p := w.provider(t, l, func() {
		w.srv.Kill()
		time.Sleep(time.Second) // the lease ends meanwhile
	})
	w.wantUp(p, 2, holdfast.ErrLeaseLost)
	w.srv.Restart()
	w.wantUp(p, 0, nil)
}

func TestLocker_RedisAwayAtTheEnd(t *testing.T) {
	w := newWorld(t)
	p := w.provider(t, w.locker(), w.srv.Kill)
	w.wantUp(p, 2, holdfast.ErrNotReleased)
	w.srv.Restart()
	w.wantUp(p, 0, nil)
}

func TestLocker_LostLease(t *testing.T) {
	w := newWorld(t)
	p := w.provider(t, w.locker(holdfast.WithLease(300*time.Millisecond)), func() {
		w.srv.Admin().Del(context.Background(), "migrations")
		time.Sleep(time.Second) // a renewal notices it
	})
	w.wantUp(p, 2, holdfast.ErrLeaseLost)
	w.wantUp(p, 0, nil)
}

func TestLocker_KilledProcess(t *testing.T) {
	w := newWorld(t)
	killed := redistest.StartProcess(t, "migrator", w.srv.Addr(), w.file)
	killed.Expect(t, "migrating")
	w.wantUp(w.provider(t, w.locker(holdfast.WithWait(time.Second)), nothing), 0, holdfast.ErrNotAcquired)
	killed.Kill()
	w.wantUp(w.provider(t, w.locker(), nothing), 1, nil) // the first was applied
}

// Providers that share a locker exclude each other: one waits for no longer than WithWait, and even if the first has lost its lease.
func TestLocker_Shared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := holdfasttest.NewServer(t)
		shared := holdfastgoose.NewLocker(server.NewManager().Mutex("migrations", holdfast.WithWait(time.Minute)))
		locktest.WantErr(t, shared.Unlock(t.Context(), nil), holdfast.ErrNotHeld, nil)
		redistest.Must(t, shared.Lock(t.Context(), nil))
		locktest.WantErr(t, shared.Lock(t.Context(), nil), holdfast.ErrNotAcquired, nil)

		server.Lose("migrations")
		time.Sleep(time.Minute) // a renewal notices it
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		locktest.WantErr(t, shared.Lock(ctx, nil), context.DeadlineExceeded, nil)
		next := redistest.Begin(func() error { return shared.Lock(t.Context(), nil) })
		synctest.Wait()
		other := server.Hold(server.NewManager().Mutex("migrations"))
		locktest.WantErr(t, shared.Unlock(t.Context(), nil), holdfast.ErrLeaseLost, nil)
		synctest.Wait()
		redistest.Want(t, len(next), 0, "%d: the next provider does not wait for the other process")
		redistest.Must(t, other.Unlock(t.Context()))
		redistest.Must(t, redistest.Next(t, next, "the next provider does not get the lock"))
		redistest.Must(t, shared.Unlock(t.Context(), nil))
	})
}
