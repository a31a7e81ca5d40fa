package holdfast_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// What the documents show beside the Examples: it compiles here, and it runs, but for
// what needs a database. TestDocs_SnippetsAreCode compares.

func takeTurns(ctx context.Context, locks *holdfast.Manager) error {
	lease, err := locks.Mutex("report:daily").Lock(ctx) // waits until granted or ctx ends
	if err != nil {
		return err
	}
	return lease.Unlock(ctx)
}

func inOrder(ctx context.Context, locks *holdfast.Manager) error {
	lease, err := locks.FairMutex("counter:1").Lock(ctx) // whoever came first, in any process
	if err != nil {
		return err
	}
	return lease.Unlock(ctx)
}

func readTogether(ctx context.Context, locks *holdfast.Manager) error {
	schema := locks.RWMutex("schema")
	lease, err := schema.RLock(ctx) // schema.Lock(ctx) is the write side
	if err != nil {
		return err
	}
	return lease.Unlock(ctx)
}

func transfer(ctx context.Context, locks *holdfast.Manager) error {
	both, err := holdfast.NewMulti(locks.Mutex("account:1"), locks.Mutex("account:2"))
	if err != nil {
		return err
	}
	lease, err := both.Lock(ctx)
	if err != nil {
		return err
	}
	return lease.Unlock(ctx)
}

func variants(ctx context.Context, locks *holdfast.Manager, work func(context.Context, *holdfast.Lease) error) error {
	lock := locks.Mutex("user:7")
	lease, err := lock.TryLock(ctx)      // asks once: ErrNotAcquired if somebody else has it
	later := lock.LockAsync(ctx)         // the result comes on a channel, no goroutine waits for it
	mu := holdfast.SyncLocker(ctx, lock) // for code that takes a sync.Locker; one for each goroutine
	if err != nil {
		return err
	}
	if err := lease.Unlock(ctx); err != nil {
		return err
	}
	result := <-later
	if result.Err != nil {
		return result.Err
	}
	if err := result.Lease.Unlock(ctx); err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	return holdfast.Do(ctx, locks.Mutex("user:8"), work)
}

func holdSafely(ctx context.Context, locks *holdfast.Manager, rebuildIndex func(context.Context) error) error {
	wait, cancel := context.WithTimeout(ctx, 5*time.Second) // bounds the wait, not the work
	defer cancel()
	lease, err := locks.Mutex("job").Lock(wait)
	if errors.Is(err, holdfast.ErrNotAcquired) {
		return ctx.Err() // nil: somebody else is at it
	}
	if err != nil {
		return err // mostly ErrUnavailable: nobody knows who holds it
	}
	defer lease.Unlock(ctx)                 // releases even if ctx has ended by then
	return rebuildIndex(lease.Context(ctx)) // stops when the lease is lost
}

func keepsTheError(ctx context.Context, locks *holdfast.Manager, rebuild func(context.Context) error) (err error) {
	lease, err := locks.Mutex("job").Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lease.Unlock(ctx)) }()
	return rebuild(lease.Context(ctx))
}

func rebuildUnder(ctx context.Context, lock holdfast.Locker, rebuild func(context.Context) error) error {
	err := holdfast.Do(ctx, lock, func(ctx context.Context, lease *holdfast.Lease) error {
		return rebuild(ctx)
	})
	return err
}

// docs/SAFETY.md shows it for any database.
const setBalance = `
UPDATE account SET balance = $1, fence = $2 WHERE id = $3 AND fence <= $2
`

var errStale = errors.New("somebody with a later lock was here")

func fenced(ctx context.Context, locks *holdfast.Manager, db *sql.DB) error {
	lease, err := locks.Mutex("stock:42", holdfast.WithFencing()).Lock(ctx)
	if err != nil {
		return err
	}
	defer lease.Unlock(ctx)
	result, err := db.ExecContext(lease.Context(ctx),
		`UPDATE stock SET n = n - 1, fence = $1 WHERE id = 42 AND fence <= $1`, lease.Token())
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, errStale) // refused: somebody with a later lock was here
	}
	return nil
}

func TestREADME_SnippetsRun(t *testing.T) {
	m, err := holdfast.New(redistest.Start(t).Client(t))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(context.Background())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ran := 0
	run := func(context.Context) error { ran++; return nil }
	if !strings.Contains(read(t, "README.md"), "`defer func() { err = errors.Join(err, lease.Unlock(ctx)) }()`") { // keepsTheError has it
		t.Error("the README does not say how to keep the error of Unlock")
	}
	err = keepsTheError(ctx, m, func(ctx context.Context) error {
		_, err := m.ForceUnlock(ctx, "job")
		return err
	})
	if !errors.Is(err, holdfast.ErrLeaseLost) {
		t.Errorf("keepsTheError: %v, want the loss", err)
	}
	for name, err := range map[string]error{
		"keepsTheError": keepsTheError(ctx, m, run),
		"takeTurns":     takeTurns(ctx, m),
		"inOrder":       inOrder(ctx, m),
		"readTogether":  readTogether(ctx, m),
		"transfer":      transfer(ctx, m),
		"variants":      variants(ctx, m, func(ctx context.Context, _ *holdfast.Lease) error { return run(ctx) }),
		"holdSafely":    holdSafely(ctx, m, run),
		"rebuildUnder":  rebuildUnder(ctx, m.Mutex("index"), run),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if ran != 4 {
		t.Errorf("%d of 4 functions were called", ran)
	}
	_, _ = fenced, setBalance // need a database; the fenced-writer example does it on Redis
}

// docs/TESTING.md has it for programs that need an address.
func TestTesting_Miniredis(t *testing.T) {
	server := miniredis.RunT(t)
	server.ClockTTL(true)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	locks, err := holdfast.New(client)
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close(t.Context())
	lease := mustLock(t, locks.Mutex("x", holdfast.WithLease(2*time.Second)))
	server.Close()
	if _, err := locks.Mutex("y").TryLock(t.Context()); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("while it is closed: %v", err)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	if info, err := locks.Inspect(t.Context(), "x"); err != nil || !info.Held {
		t.Errorf("after the restart: %+v, %v", info, err)
	}
	if freed, err := locks.ForceUnlock(t.Context(), "x"); err != nil || !freed {
		t.Errorf("ForceUnlock: %v, %v", freed, err)
	}
	<-lease.Done()
	crashed, err := locks.Mutex("x", holdfast.WithFixedLease(100*time.Millisecond)).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mustUnlock(t, mustLock(t, locks.Mutex("x"))) // granted when that has expired
	<-crashed.Done()
}

func TestTesting_RealServer(t *testing.T) {
	addr := redistest.Start(t, redistest.WithoutPassword()).Addr()
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	locks, err := holdfast.New(client, holdfast.WithNameMapper(func(name string) string { return t.Name() + ":" + name }))
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close(t.Context())
	lease := mustLock(t, locks.Mutex("x"))
	if n, err := client.Exists(t.Context(), "TestTesting_RealServer:x").Result(); n != 1 || err != nil {
		t.Errorf("the key: %d, %v", n, err)
	}
	mustUnlock(t, lease)
}
