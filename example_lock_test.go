package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

// A FairMutex serves the callers of all processes in the order of arrival.
func ExampleFairMutex() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()
	ctx := context.Background()
	counter := locks.FairMutex("counter:1")

	lease, err := counter.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	var served []int
	var wg sync.WaitGroup
	for customer := range 3 {
		wg.Go(func() {
			lease, err := counter.Lock(ctx)
			if err != nil {
				log.Fatal(err)
			}
			defer lease.Unlock(ctx)
			served = append(served, customer) // alone, thanks to the lock
		})
		server.AwaitWaiters("counter:1", customer+1)
	}
	lease.Unlock(ctx)
	wg.Wait()
	fmt.Println(served)
	// Output: [0 1 2]
}

// Do unlocks, even after a panic, and returns ErrLeaseLost if the lock was lost while the
// function ran.
func ExampleDo() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()

	err := holdfast.Do(context.Background(), locks.Mutex("index"), func(ctx context.Context, lease *holdfast.Lease) error {
		locks.ForceUnlock(ctx, "index") // an operator takes it away
		<-ctx.Done()                    // what works under ctx stops
		return nil
	})
	fmt.Println(errors.Is(err, holdfast.ErrLeaseLost))
	// Output: true
}

// Stats shows what the manager does, here that re-entry costs no command.
func ExampleManager_Stats() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()
	ctx := context.Background()
	outer, err := locks.Mutex("counted").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	before := locks.Stats()
	inner, err := locks.Mutex("counted").Lock(outer.Context(ctx))
	if err != nil {
		log.Fatal(err)
	}
	inner.Unlock(ctx)
	after := locks.Stats()
	fmt.Println(after.Held, after.Reentered, after.Commands-before.Commands)
	outer.Unlock(ctx)
	// Output: 1 1 0
}

// Goroutines that share the context of a lock's lease re-enter that lock. WithoutOwner makes them
// exclude each other on it.
func ExampleWithoutOwner() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()
	lease, err := locks.Mutex("tree").Lock(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	ctx := lease.Context(context.Background())

	again, err := locks.Mutex("tree").TryLock(ctx)
	fmt.Println(err)
	_, err = locks.Mutex("tree").TryLock(holdfast.WithoutOwner(ctx))
	fmt.Println(errors.Is(err, holdfast.ErrNotAcquired))
	again.Unlock(ctx)
	lease.Unlock(ctx)
	// Output:
	// <nil>
	// true
}

func ExampleLease_Extend() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()
	ctx := context.Background()
	lease, err := locks.Mutex("upload", holdfast.WithFixedLease(time.Minute)).Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	before := lease.Deadline()
	fmt.Println(lease.Extend(ctx, 10*time.Minute)) // at least as long from now
	fmt.Println(lease.Deadline().After(before.Add(5 * time.Minute)))
	lease.Unlock(ctx)
	// Output:
	// <nil>
	// true
}

// Valid does no I/O: call it before each effect. It makes the gap
// between looking and acting small; only a fencing token closes it.
func ExampleLease_Valid() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()
	ctx := context.Background()
	lease, err := locks.Mutex("mail").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, recipient := range []string{"ada", "grace"} {
		if !lease.Valid() {
			log.Fatal("the lease is over") // Err may not say so yet
		}
		fmt.Println("to", recipient)
	}
	lease.Unlock(ctx)
	fmt.Println(lease.Valid(), lease.Err())
	// Output:
	// to ada
	// to grace
	// false holdfast: lease released
}

// Unlock says whether the lock was held to the end, and releases even if the context
// has ended.
func ExampleLease_Unlock() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()
	ctx, cancel := context.WithCancel(context.Background())
	lease, err := locks.Mutex("report").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	cancel()
	fmt.Println(lease.Name(), lease.Unlock(ctx))
	fmt.Println(errors.Is(lease.Unlock(ctx), holdfast.ErrNotHeld)) // a second time
	// Output:
	// report <nil>
	// true
}

// A job that all replicas start at midnight: it takes milliseconds, and their clocks differ by more.
func ExampleWithHoldAtLeast() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	ctx := context.Background()

	for _, replica := range []string{"web-1", "web-2"} {
		job := server.NewManager().Mutex("job:nightly", holdfast.WithHoldAtLeast(time.Minute))
		lease, err := job.TryLock(ctx)
		if errors.Is(err, holdfast.ErrNotAcquired) {
			fmt.Println(replica, "leaves it to another replica")
			continue
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(replica, "runs the job")
		if err := lease.Unlock(ctx); err != nil { // the lock stays taken for the rest of the minute
			log.Fatal(err)
		}
	}
	// Output:
	// web-1 runs the job
	// web-2 leaves it to another replica
}

// A request takes the lock, and a worker in another process finishes the work under it.
func ExampleLease_Detach() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	web, worker := server.NewManager(), server.NewManager()
	ctx := context.Background()

	lease, err := web.Mutex("upload:7", holdfast.WithFencing()).Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	token := lease.Token()
	ticket, err := lease.Detach(ctx, time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	_, err = web.Mutex("upload:7").TryLock(ctx)
	fmt.Println("free in between:", !errors.Is(err, holdfast.ErrNotAcquired))

	second, err := worker.Attach(ctx, ticket) // which came with the job
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the same token:", second.Token() == token)
	_, err = worker.Attach(ctx, ticket)
	fmt.Println("a second time:", errors.Is(err, holdfast.ErrLeaseLost))
	fmt.Println(second.Unlock(ctx))
	// Output:
	// free in between: false
	// the same token: true
	// a second time: true
	// <nil>
}

// What a program holds and waits for, without asking Redis.
func ExampleManager_Locks() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()

	ctx := holdfast.WithLabel(context.Background(), "checkout")
	lease, err := locks.Mutex("stock:42").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Unlock(ctx)
	locks.Mutex("stock:42").LockAsync(holdfast.WithLabel(ctx, "refund"))

	for l := range locks.Locks() {
		fmt.Println(l.Name, l.Kind, l.State, "by", l.Label, "while", l.Waiters, "waits:", l.WaiterLabel)
	}
	// Output: stock:42 mutex held by checkout while 1 waits: refund
}

// The names for which the callers of a program wait most often.
func ExampleManager_Contended() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()
	ctx := context.Background()

	lease, err := locks.Mutex("stock:42").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	next := locks.Mutex("stock:42").LockAsync(ctx) // it waits
	if err := lease.Unlock(ctx); err != nil {
		log.Fatal(err)
	}
	r := <-next
	if r.Err != nil {
		log.Fatal(r.Err)
	}
	defer r.Lease.Unlock(ctx)
	for _, c := range locks.Contended(10) {
		fmt.Println(c.Name, c.Waits > 0)
	}
	// Output: stock:42 true
}

// Token is for logs: it is 0 where FencingToken returns an error.
func ExampleLease_Token() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()

	err := holdfast.Do(context.Background(), locks.Mutex("user:9"), func(ctx context.Context, lease *holdfast.Lease) error {
		fmt.Println("token", lease.Token())
		_, err := lease.FencingToken()
		return err
	})
	fmt.Println(err)
	// Output:
	// token 0
	// holdfast: FencingToken: lock "user:9" was taken without WithFencing
}

// Five downloads at a time, over all processes.
func ExampleSemaphore() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()
	ctx := context.Background()
	downloads := locks.Semaphore("downloads", 5)

	lease, err := downloads.Acquire(ctx, 3) // a large one counts as three
	if err != nil {
		log.Fatal(err)
	}
	_, err = downloads.TryAcquire(ctx, 3)
	fmt.Println(lease.Permits(), "of five are taken, three are too many:", errors.Is(err, holdfast.ErrNotAcquired))

	more := downloads.AcquireAsync(ctx, 3)
	fmt.Println(lease.Unlock(ctx))
	fmt.Println((<-more).Lease.Unlock(ctx))

	err = holdfast.Do(ctx, downloads.Locker(1), func(context.Context, *holdfast.Lease) error {
		return downloads.SetPermits(ctx, 10) // for all processes
	})
	info, _ := locks.Inspect(ctx, "downloads")
	fmt.Println(err, info.Permits)
	// Output:
	// 3 of five are taken, three are too many: true
	// <nil>
	// <nil>
	// <nil> 10
}

// One call at a time for each customer. Redis forgets a customer that makes no calls.
func ExampleWithIdleTTL() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	ctx := context.Background()
	calls := server.NewManager().Semaphore("calls:customer-17", 1, holdfast.WithIdleTTL(time.Hour))
	lease, err := calls.TryAcquire(ctx, 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lease.Unlock(ctx))
	// Output: <nil>
}
