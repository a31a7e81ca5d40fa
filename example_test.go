package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

func Example() {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	locks, err := holdfast.New(client) // one Manager per process
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	err = holdfast.Do(ctx, locks.Mutex("stock:42"), func(ctx context.Context, lease *holdfast.Lease) error {
		fmt.Println("no other process is here") // use this ctx: it is cancelled if the lease is lost
		return nil
	})
	if err != nil {
		log.Print(err)
	}
	// Output: no other process is here
}

func ExampleMutex_Lock() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()

	report := func(ctx context.Context) (err error) {
		lease, err := locks.Mutex("report:daily").Lock(ctx)
		if err != nil {
			return err
		}
		defer lease.UnlockInto(ctx, &err)
		fmt.Println("held:", lease.Valid())
		return nil
	}
	if err := report(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output: held: true
}

func ExampleMutex_TryLock() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	here, there := server.NewManager(), server.NewManager() // there is what another process has
	ctx := context.Background()

	lease, err := there.Mutex("user:7").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = here.Mutex("user:7").TryLock(ctx)
	switch {
	case errors.Is(err, holdfast.ErrNotAcquired):
		fmt.Println("busy: another process handles this user")
	case errors.Is(err, holdfast.ErrUnavailable):
		fmt.Println("Redis did not answer: the lock may or may not be held")
	}
	fmt.Println(lease.Unlock(ctx))
	// Output:
	// busy: another process handles this user
	// <nil>
}

// A job holds its own lock and fans out; its workers take a lock for each item. They exclude each
// other on the items, although they all work under the context of the job's lock.
func ExampleDo_fanOut() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()
	balance := 0 // of account:1, which two of the transfers are for
	err := holdfast.Do(context.Background(), locks.Mutex("job:transfers"), func(ctx context.Context, _ *holdfast.Lease) error {
		g, ctx := errgroup.WithContext(ctx)
		for _, account := range []string{"account:1", "account:2", "account:1"} {
			g.Go(func() error {
				return holdfast.Do(ctx, locks.Mutex(account), func(context.Context, *holdfast.Lease) error {
					if account == "account:1" {
						balance += 10 // no other goroutine is here
					}
					return nil
				})
			})
		}
		return g.Wait()
	})
	fmt.Println(balance, err)
	// Output: 20 <nil>
}

// A Lock under the context of the lock's own lease re-enters.
func ExampleLease_Context_reentry() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()
	ctx := context.Background()
	account := locks.Mutex("account:1")

	outer, err := account.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	inner, err := account.Lock(outer.Context(ctx)) // no Redis command
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(outer.Unlock(ctx), inner.Valid())
	fmt.Println(inner.Unlock(ctx)) // free now
	// Output:
	// <nil> true
	// <nil>
}

// The resource that the lock protects remembers the largest token and refuses smaller
// ones, so that a holder that was paused beyond its lease can do no harm.
func ExampleLease_FencingToken() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()
	ctx := context.Background()
	stock := locks.Mutex("fenced:stock", holdfast.WithFencing())

	var highest uint64
	write := func(lease *holdfast.Lease) error { // in SQL: UPDATE ... WHERE fence <= :token must change a row
		token, err := lease.FencingToken()
		if err != nil {
			return err
		}
		if token < highest {
			return errors.New("stale token")
		}
		highest = token
		return nil
	}
	first, err := stock.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	first.Unlock(ctx)
	second, err := stock.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(write(second))
	fmt.Println(write(first)) // the paused holder wakes up
	second.Unlock(ctx)
	// Output:
	// <nil>
	// stale token
}

func ExampleLease_Done() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()
	ctx := context.Background()
	lease, err := locks.Mutex("job:nightly").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	locks.ForceUnlock(ctx, "job:nightly") // an operator takes it away

	<-lease.Done()
	var lost *holdfast.LostError
	fmt.Println(errors.As(lease.Err(), &lost), lost.Reason)
	fmt.Println(errors.Is(lease.Unlock(ctx), holdfast.ErrLeaseLost))
	// Output:
	// true deleted
	// true
}

func ExampleMutex_LockAsync() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()
	ctx := context.Background()

	result := <-locks.Mutex("later").LockAsync(ctx)
	if result.Err != nil {
		log.Fatal(result.Err)
	}
	fmt.Println(result.Lease.Unlock(ctx))
	// Output: <nil>
}

// A sync.Locker panics when it cannot lock, and when the lock was lost.
func ExampleSyncLocker() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()

	counter := locks.Mutex("counter")
	n := 0
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			mu := holdfast.SyncLocker(context.Background(), counter) // each goroutine has its own
			mu.Lock()
			defer mu.Unlock()
			n++
		})
	}
	wg.Wait()
	fmt.Println(n)
	// Output: 10
}

func ExampleManager_Inspect() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()
	ctx := context.Background()
	lease, err := locks.Mutex("looked-at").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	info, err := locks.Inspect(ctx, "looked-at")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.Kind, info.Held, len(info.Holders), info.TTL > 20*time.Second)
	lease.Unlock(ctx)
	// Output: mutex true 1 true
}

func ExampleManager_Close() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()
	ctx := context.Background()
	lease, err := locks.Mutex("at-the-end").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(locks.Close(ctx)) // releases what is held
	fmt.Println(errors.Is(lease.Err(), holdfast.ErrClosed))
	_, err = locks.Mutex("at-the-end").Lock(ctx)
	fmt.Println(errors.Is(err, holdfast.ErrClosed))
	// Output:
	// <nil>
	// true
	// true
}

// An operator has looked at a lock and decided to free it. If another owner has taken it meanwhile, that one keeps it.
func ExampleManager_ForceUnlockOf() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()
	ctx := context.Background()

	if _, err := locks.Mutex("job:nightly").Lock(ctx); err != nil {
		log.Fatal(err)
	}
	info, err := locks.Inspect(ctx, "job:nightly")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(locks.ForceUnlockOf(ctx, "job:nightly", "another owner"))
	fmt.Println(locks.ForceUnlockOf(ctx, "job:nightly", info.Holders[0].Owner))
	// Output:
	// false <nil>
	// true <nil>
}

// A process says what it is and where its debug page is, and an operator sees that beside the owner id.
func ExampleWithIdentity() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client, holdfast.WithIdentity("shop"))
	defer server.Close()
	shop := server.NewManager(holdfast.WithIdentity("shop"), holdfast.WithDebugPage("http://web-3:6060/debug/holdfast/"))
	operator := server.NewManager(holdfast.WithIdentity("console"))
	ctx := context.Background()

	lease, err := shop.Mutex("stock:42").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Unlock(ctx)
	var id *holdfast.Identity
	for id == nil { // it is written beside the first lock, and can come a moment after it
		info, err := operator.Inspect(ctx, "stock:42")
		if err != nil {
			log.Fatal(err)
		}
		id = info.Holders[0].Identity
	}
	fmt.Println("held by", id.App, id.PID == os.Getpid())
	fmt.Println("its page is", id.Debug)
	// Output:
	// held by shop true
	// its page is http://web-3:6060/debug/holdfast/
}
