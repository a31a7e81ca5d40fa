package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A FairMutex serves everybody, in all processes, in the order of arrival.
func ExampleFairMutex() {
	m, done := newManager()
	defer done()
	ctx := context.Background()
	counter := m.FairMutex("counter:1")

	lease, err := counter.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	var served []int
	var wg sync.WaitGroup
	for customer := range 3 {
		stands := waiting(m, "counter:1")
		wg.Go(func() {
			lease, err := counter.Lock(ctx)
			if err != nil {
				log.Fatal(err)
			}
			defer lease.Unlock(ctx)
			served = append(served, customer) // alone, thanks to the lock
		})
		<-stands
	}
	lease.Unlock(ctx)
	wg.Wait()
	fmt.Println(served)
	// Output: [0 1 2]
}

// waiting returns a channel that is closed when one more stands in the queue of the
// named lock.
func waiting(m *holdfast.Manager, name string) <-chan struct{} {
	length := func() int {
		info, err := m.Inspect(context.Background(), name)
		if err != nil {
			log.Fatal(err)
		}
		return info.Waiters
	}
	before, stands := length(), make(chan struct{})
	go func() {
		for length() == before {
			time.Sleep(time.Millisecond) // nobody tells
		}
		close(stands)
	}()
	return stands
}

// TryLock returns at once if somebody else holds the lock or waits for it.
func ExampleFairMutex_TryLock() {
	m, done := newManager()
	defer done()
	ctx := context.Background()

	lease, err := m.FairMutex("counter:2").TryLock(ctx)
	fmt.Println(err)
	_, err = m.FairMutex("counter:2").TryLock(ctx) // another owner
	fmt.Println(errors.Is(err, holdfast.ErrNotAcquired))
	lease.Unlock(ctx)
	// Output:
	// <nil>
	// true
}

func ExampleFairMutex_LockAsync() {
	m, done := newManager()
	defer done()
	ctx := context.Background()

	first := <-m.FairMutex("counter:3").LockAsync(ctx)
	second := m.FairMutex("counter:3").LockAsync(ctx) // no goroutine waits for it
	fmt.Println(first.Lease.Unlock(ctx))
	fmt.Println((<-second).Lease.Unlock(ctx))
	// Output:
	// <nil>
	// <nil>
}

// Do unlocks, also after a panic, and reports if the lock was lost while the function
// ran.
func ExampleDo() {
	m, done := newManager()
	defer done()

	err := holdfast.Do(context.Background(), m.Mutex("index"), func(ctx context.Context, lease *holdfast.Lease) error {
		m.ForceUnlock(ctx, "index") // an operator takes it away
		<-ctx.Done()                // what works under ctx stops
		return nil
	})
	fmt.Println(errors.Is(err, holdfast.ErrLeaseLost))
	// Output: true
}

// A lock that nobody will give back, because its holder is known to be gone, can be
// freed before its lease runs out.
func ExampleManager_ForceUnlock() {
	m, done := newManager()
	defer done()
	ctx := context.Background()
	if _, err := m.Mutex("stuck").Lock(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.ForceUnlock(ctx, "stuck"))
	fmt.Println(m.ForceUnlock(ctx, "stuck")) // there is nothing to free
	// Output:
	// true <nil>
	// false <nil>
}

// Stats shows what the manager does, here that re-entry costs no command.
func ExampleManager_Stats() {
	m, done := newManager()
	defer done()
	ctx := context.Background()
	outer, err := m.Mutex("counted").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	before := m.Stats()
	inner, err := m.Mutex("counted").Lock(outer.Context(ctx))
	if err != nil {
		log.Fatal(err)
	}
	inner.Unlock(ctx)
	after := m.Stats()
	fmt.Println(after.Held, after.Reentered, after.Commands-before.Commands)
	outer.Unlock(ctx)
	// Output: 1 1 0
}

// Goroutines that share the context of a lock's lease re-enter that lock. WithoutOwner makes them
// exclude each other on it.
func ExampleWithoutOwner() {
	m, done := newManager()
	defer done()
	lease, err := m.Mutex("tree").Lock(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	ctx := lease.Context(context.Background())

	again, err := m.Mutex("tree").TryLock(ctx)
	fmt.Println(err)
	_, err = m.Mutex("tree").TryLock(holdfast.WithoutOwner(ctx))
	fmt.Println(errors.Is(err, holdfast.ErrNotAcquired))
	again.Unlock(ctx)
	lease.Unlock(ctx)
	// Output:
	// <nil>
	// true
}

func ExampleLease_Extend() {
	m, done := newManager()
	defer done()
	ctx := context.Background()
	lease, err := m.Mutex("upload", holdfast.WithFixedLease(time.Minute)).Lock(ctx)
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

// Valid asks nobody and costs nothing: call it before each effect. It makes the gap
// between looking and acting small; only a fencing token closes it.
func ExampleLease_Valid() {
	m, done := newManager()
	defer done()
	ctx := context.Background()
	lease, err := m.Mutex("mail").Lock(ctx)
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
	m, done := newManager()
	defer done()
	ctx, cancel := context.WithCancel(context.Background())
	lease, err := m.Mutex("report").Lock(ctx)
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
