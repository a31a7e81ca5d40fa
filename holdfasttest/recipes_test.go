package holdfasttest_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

// The recipes of docs/TESTING.md, and the code under test: TestDocs_SnippetsAreCode compares.

func TestPayments_LockedOrder(t *testing.T) {
	server := holdfasttest.NewServer(t)
	handler := payments(server.NewManager(), func(context.Context, string) error { return nil })

	other := server.NewManager() // another process
	lease := server.Hold(other.Mutex("order:7"))
	if code := post(handler, "/orders/7/payment"); code != http.StatusLocked {
		t.Errorf("while another process has the lock: %d", code)
	}
	lease.Unlock(t.Context())
	if code := post(handler, "/orders/7/payment"); code != http.StatusOK {
		t.Errorf("after that: %d", code)
	}
	if held := server.Held(); len(held) > 0 {
		t.Errorf("not given back: %q", held)
	}
}

// runNightly runs job, unless another process is running it. It reports whether it did.
func runNightly(ctx context.Context, locks *holdfast.Manager, job func(context.Context) error) (ran bool, err error) {
	lease, err := locks.Mutex("job:nightly").TryLock(ctx)
	if errors.Is(err, holdfast.ErrNotAcquired) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer lease.UnlockInto(ctx, &err)
	return true, job(lease.Context(ctx))
}

func TestNightly_IsSkippedWhileAnotherRuns(t *testing.T) {
	server := holdfasttest.NewServer(t)
	server.Hold(server.NewManager().Mutex("job:nightly"))
	ran, err := runNightly(t.Context(), server.NewManager(), func(context.Context) error { return nil })
	if ran || err != nil {
		t.Errorf("beside another: ran %v, %v", ran, err)
	}
}

func TestNightly_RunsAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := holdfasttest.NewServer(t)
		crashed := server.NewManager().Mutex("job:nightly", holdfast.WithFixedLease(30*time.Second))
		server.Hold(crashed) // never renewed, never unlocked

		time.Sleep(31 * time.Second) // takes no time
		ran, err := runNightly(t.Context(), server.NewManager(), func(context.Context) error { return nil })
		if !ran || err != nil {
			t.Errorf("after a crash: ran %v, %v", ran, err)
		}
	})
}

// reindex writes page after page, and stops when it has lost its lock.
func reindex(ctx context.Context, locks *holdfast.Manager, pages int, write func(ctx context.Context, page int) error) error {
	return holdfast.Do(ctx, locks.Mutex("index"), func(ctx context.Context, _ *holdfast.Lease) error {
		for page := range pages {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if err := write(ctx, page); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestReindex_StopsWhenItLosesTheLock(t *testing.T) {
	server := holdfasttest.NewServer(t)
	var written []int
	err := reindex(t.Context(), server.NewManager(), 100, func(_ context.Context, page int) error {
		written = append(written, page)
		if page == 2 {
			server.Lose("index")
		}
		return nil
	})
	if !errors.Is(err, holdfast.ErrLeaseLost) || len(written) != 3 {
		t.Errorf("wrote pages %v, %v", written, err)
	}
}

func TestReindex_Outages(t *testing.T) {
	minute := func(ctx context.Context, _ int) error { // what a page takes
		select {
		case <-time.After(time.Minute):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for name, test := range map[string]struct {
		outage time.Duration
		want   error
	}{
		"short": {15 * time.Second, nil},                   // the default lease is 30 s
		"long":  {10 * time.Minute, holdfast.ErrLeaseLost}, // it ends the work while Redis is still away
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := holdfasttest.NewServer(t)
				time.AfterFunc(90*time.Second, server.Down)
				time.AfterFunc(90*time.Second+test.outage, server.Up)
				if err := reindex(t.Context(), server.NewManager(), 5, minute); !errors.Is(err, test.want) {
					t.Errorf("got %v, want %v", err, test.want)
				}
			})
		})
	}
}

// withdraw waits for the account for at most a second.
func withdraw(ctx context.Context, locks *holdfast.Manager) error {
	wait, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	lease, err := locks.Mutex("account:1").Lock(wait)
	if err != nil {
		return err
	}
	return lease.Unlock(ctx)
}

func TestWithdraw_GivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := holdfasttest.NewServer(t)
		locks := server.NewManager()
		lease := server.Hold(server.NewManager().Mutex("account:1"))
		if err := withdraw(t.Context(), locks); !errors.Is(err, holdfast.ErrNotAcquired) {
			t.Errorf("while another process has the lock: %v", err)
		}
		lease.Unlock(t.Context())

		server.Hang() // Redis says nothing
		if err := withdraw(t.Context(), locks); !errors.Is(err, holdfast.ErrUnavailable) {
			t.Errorf("while Redis is silent: %v", err)
		}
	})
}

func TestWithdraw_WaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := holdfasttest.NewServer(t)
		lease := server.Hold(server.NewManager().Mutex("account:1"))
		done := make(chan error, 1)
		go func() { done <- withdraw(t.Context(), server.NewManager()) }()

		server.AwaitWaiters("account:1", 1) // it stands in the queue
		lease.Unlock(t.Context())
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// stock accepts a change only from the holder with the largest token.
type stock struct {
	amount int
	fence  uint64
}

func (s *stock) set(amount int, lease *holdfast.Lease) error {
	token, err := lease.FencingToken()
	if err != nil {
		return err
	}
	if token < s.fence {
		return errors.New("a later holder was here")
	}
	s.amount, s.fence = amount, token
	return nil
}

func TestStock_RefusesAHolderThatIsLate(t *testing.T) {
	server := holdfasttest.NewServer(t)
	var shelf stock
	late := server.Hold(server.NewManager().Mutex("stock", holdfast.WithFencing()))
	server.Lose("stock")
	next := server.Hold(server.NewManager().Mutex("stock", holdfast.WithFencing()))
	if err := shelf.set(5, next); err != nil {
		t.Error(err)
	}
	if err := shelf.set(9, late); err == nil || shelf.amount != 5 {
		t.Errorf("the late holder wrote: %v, %d", err, shelf.amount)
	}
}

// worker makes its own Manager, as some programs do.
func worker(ctx context.Context, client redis.UniversalClient, work func(context.Context) error) error {
	locks, err := holdfast.New(client)
	if err != nil {
		return err
	}
	defer locks.Close(context.WithoutCancel(ctx))
	return holdfast.Do(ctx, locks.Mutex("work"), func(ctx context.Context, _ *holdfast.Lease) error { return work(ctx) })
}

func TestWorker_StopsAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := holdfasttest.NewServer(t)
		err := worker(t.Context(), server.Client(), func(ctx context.Context) error {
			server.Restart() // without its data
			<-ctx.Done()     // at the next renewal, at most 10 s later
			return context.Cause(ctx)
		})
		if !errors.Is(err, holdfast.ErrLeaseLost) {
			t.Error(err)
		}
	})
}

func TestInvoices_AreHeldByTheirKey(t *testing.T) {
	server := holdfasttest.NewServer(t)
	locks := server.NewManager(holdfast.WithNameMapper(func(name string) string { return "billing:" + name }))
	lease := server.Hold(locks.Mutex("invoices"))
	if held := server.Held(); !slices.Equal(held, []string{"billing:invoices"}) {
		t.Errorf("held: %q", held)
	}
	server.Lose("billing:invoices")
	if err := lease.Err(); !errors.Is(err, holdfast.ErrLeaseLost) {
		t.Error(err)
	}
}

// After a lease has ended in an outage, Redis may still have the lock when it is back. Who waits has it as soon as the release arrives.
func TestOutage_LeavesTheLockForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := holdfasttest.NewServer(t)
		lease, other := server.Hold(server.NewManager().Mutex("x")), server.NewManager().Mutex("x")
		server.Down()
		<-lease.Done()
		if err := lease.Unlock(t.Context()); !errors.Is(err, holdfast.ErrLeaseLost) {
			t.Error(err)
		}
		server.Up()
		server.Hold(other) // or the test fails after 10 s, a third of the lease
	})
}
