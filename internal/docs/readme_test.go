package docs

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// What the documents show beside the Examples: it compiles here, and it runs, but for
// what needs a database. TestDocs_SnippetsAreCode compares.

func withTimeout(ctx context.Context, locks *holdfast.Manager, update func(context.Context) error) error {
	user := locks.Mutex("user:7", holdfast.WithWait(5*time.Second)) // then ErrNotAcquired
	return holdfast.Do(ctx, user, func(ctx context.Context, lease *holdfast.Lease) error {
		return update(ctx) // stops if the lease is lost
	})
}

func accept(ctx context.Context, lease *holdfast.Lease, push func(ticket string) error) error {
	ticket, err := lease.Detach(ctx, time.Minute) // longer than a job waits for a worker
	if err != nil {
		return err
	}
	return push(ticket) // with the job
}

func finish(ctx context.Context, locks *holdfast.Manager, ticket string, run func(context.Context) error) (err error) {
	lease, err := locks.Attach(ctx, ticket)
	if errors.Is(err, holdfast.ErrLeaseLost) {
		return nil // another worker has had the job, or this one comes too late
	}
	if err != nil {
		return err // Redis did not answer: the ticket still works
	}
	defer lease.UnlockInto(ctx, &err)
	return run(lease.Context(ctx))
}

func inSteps(ctx context.Context, lock holdfast.Locker, items []string, reindex func(context.Context, string) error) error {
	lease, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	for _, item := range items {
		select {
		case <-lease.Wanted():
			if err := lease.Unlock(ctx); err != nil {
				return err
			}
			if lease, err = lock.Lock(ctx); err != nil {
				return err
			}
		default:
		}
		if err := reindex(lease.Context(ctx), item); err != nil {
			return err
		}
	}
	return lease.Unlock(ctx)
}

func inOneReplica(ctx context.Context, locks *holdfast.Manager, buildReport func(context.Context) error) (err error) {
	lease, err := locks.Mutex("report:daily").TryLock(ctx)
	if errors.Is(err, holdfast.ErrNotAcquired) {
		return nil // another replica is building the report
	}
	if err != nil {
		return err // usually ErrUnavailable: the lock may or may not be held
	}
	defer lease.UnlockInto(ctx, &err) // joins its error to err, the named result of this function
	return buildReport(lease.Context(ctx))
}

type work = func(context.Context, *holdfast.Lease) error

func readTogether(ctx context.Context, locks *holdfast.Manager, readPrices work) error {
	return holdfast.Do(ctx, locks.RWMutex("prices").RLocker(), readPrices)
}

func allOrNone(ctx context.Context, locks *holdfast.Manager, transfer work) error {
	both, err := holdfast.NewMulti(locks.Mutex("account:1"), locks.Mutex("account:2"))
	if err != nil {
		return err
	}
	return holdfast.Do(ctx, both, transfer)
}

func forSyncLocker(ctx context.Context, locks *holdfast.Manager) {
	mu := holdfast.SyncLocker(ctx, locks.Mutex("cache"))
	mu.Lock()         // retries until ctx ends, then panics
	defer mu.Unlock() // panics if the lease was lost
}

func untilASignal(locks *holdfast.Manager, work work) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := holdfast.Do(ctx, locks.Mutex("worker"), work) // work returns when its context is cancelled
	return errors.Join(err, locks.Close(context.Background()))
}

func keepsTheError(ctx context.Context, locks *holdfast.Manager, rebuild func(context.Context) error) (err error) {
	lease, err := locks.Mutex("job").Lock(ctx)
	if err != nil {
		return err
	}
	defer lease.UnlockInto(ctx, &err) // makes its attempt even if ctx has ended
	return rebuild(lease.Context(ctx))
}

func rebuildUnder(ctx context.Context, lock holdfast.Locker, rebuild func(context.Context) error) error {
	err := holdfast.Do(ctx, lock, func(ctx context.Context, lease *holdfast.Lease) error {
		return rebuild(ctx)
	})
	return err
}

var errStale = errors.New("a later holder has already written")

func fenced(ctx context.Context, locks *holdfast.Manager, db *sql.DB, balance int) (err error) {
	lease, err := locks.Mutex("account:7", holdfast.WithFencing()).Lock(ctx)
	if err != nil {
		return err
	}
	defer lease.UnlockInto(ctx, &err)
	token, err := lease.FencingToken() // an error if the lock has none
	if err != nil {
		return err
	}
	result, err := db.ExecContext(lease.Context(ctx),
		`UPDATE account SET balance = $1, fence = $2 WHERE id = 7 AND fence <= $2`, balance, token)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, errStale) // no row: a later holder has already written
	}
	return nil
}

func TestREADME_SnippetsRun(t *testing.T) {
	m := locktest.ManagerAsIs(t, redistest.Start(t).Client(t))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ran := 0
	run := func(context.Context) error { ran++; return nil }
	if !strings.Contains(read(t, "README.md"), "`defer lease.UnlockInto(ctx, &err)`") { // keepsTheError has it
		t.Error("the README does not say how to keep the error of Unlock")
	}
	err := keepsTheError(ctx, m, func(ctx context.Context) error {
		_, err := m.ForceUnlock(ctx, "job")
		return err
	})
	locktest.WantErr(t, err, holdfast.ErrLeaseLost, nil)
	under := func(ctx context.Context, _ *holdfast.Lease) error { return run(ctx) }
	for name, err := range map[string]error{
		"keepsTheError": keepsTheError(ctx, m, run),
		"withTimeout":   withTimeout(ctx, m, run),
		"inOneReplica":  inOneReplica(ctx, m, run),
		"readTogether":  readTogether(ctx, m, under),
		"allOrNone":     allOrNone(ctx, m, under),
		"inSteps":       inSteps(ctx, m.Mutex("steps"), []string{"a"}, func(ctx context.Context, _ string) error { return run(ctx) }),
		"rebuildUnder":  rebuildUnder(ctx, m.Mutex("index"), run),
		"accept": accept(ctx, locktest.MustLock(t, m.Mutex("upload")), func(ticket string) error {
			return errors.Join(finish(ctx, m, ticket, run), finish(ctx, m, ticket, run)) // it runs once
		}),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	forSyncLocker(ctx, m)
	locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex("cache")))
	if !strings.Contains(read(t, "README.md"), "`holdfast.Do(ctx, locks.RWMutex(\"prices\").RLocker(), readPrices)`") {
		t.Error("the README does not have the call of readTogether")
	}

	err = untilASignal(m, func(ctx context.Context, lease *holdfast.Lease) error {
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Signal(syscall.SIGTERM)
		}
		if err == nil {
			<-ctx.Done()
			err = lease.Err() // it is still held: the signal has ended the context
		}
		return err
	})
	if err != nil {
		t.Errorf("untilASignal: %v", err)
	}
	if _, err := m.Mutex("worker").TryLock(ctx); !errors.Is(err, holdfast.ErrClosed) {
		t.Errorf("after the signal: %v", err)
	}
	redistest.Want(t, ran, 8, "%d of 8 functions were called")
	_ = fenced // needs a database; the fenced-writer example does it on Redis
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
	lease := locktest.MustLock(t, locks.Mutex("x"))
	if n, err := client.Exists(t.Context(), "TestTesting_RealServer:x").Result(); n != 1 || err != nil {
		t.Errorf("the key: %d, %v", n, err)
	}
	locktest.MustUnlock(t, lease)
}
