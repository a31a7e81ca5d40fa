package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

func ExampleRWMutex_RLock() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()
	ctx := context.Background()
	prices := locks.RWMutex("prices")

	one, err := prices.RLock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	two, err := prices.RLock(ctx) // beside the first: no Redis command
	if err != nil {
		log.Fatal(err)
	}
	_, err = prices.TryLock(ctx)
	fmt.Println("a writer is kept out:", errors.Is(err, holdfast.ErrNotAcquired))

	fmt.Println(one.Unlock(ctx), two.Unlock(ctx))
	write, err := prices.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = prices.TryRLock(ctx)
	fmt.Println("readers are kept out:", errors.Is(err, holdfast.ErrNotAcquired))
	fmt.Println(write.Unlock(ctx))
	// Output:
	// a writer is kept out: true
	// <nil> <nil>
	// readers are kept out: true
	// <nil>
}

// A writer that becomes a reader: no other writer gets in between, and other readers need
// not wait.
func ExampleRWMutex_downgrade() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()
	ctx := context.Background()
	index := locks.RWMutex("index")

	write, err := index.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("built by us")
	read, err := index.RLock(write.Context(ctx)) // the same owner
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(write.Unlock(ctx))

	other, err := index.TryRLock(ctx)
	fmt.Println("another reader:", err)
	_, err = index.TryLock(ctx)
	fmt.Println("a writer is kept out:", errors.Is(err, holdfast.ErrNotAcquired))
	fmt.Println(other.Unlock(ctx), read.Unlock(ctx))
	// Output:
	// built by us
	// <nil>
	// another reader: <nil>
	// a writer is kept out: true
	// <nil> <nil>
}

// A reader that wants to write would wait for itself, so Lock returns an error at once.
// Unlock, lock the write side, and read again: another writer may have written in between.
func ExampleRWMutex_Lock_upgrade() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()
	ctx := context.Background()
	config := locks.RWMutex("config")

	read, err := config.RLock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = config.Lock(read.Context(ctx))
	fmt.Println(errors.Is(err, holdfast.ErrWouldDeadlock), read.Valid())

	fmt.Println(read.Unlock(ctx))
	write, err := config.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(write.Unlock(ctx))
	// Output:
	// true true
	// <nil>
	// <nil>
}

// RLocker makes the read side a Locker, for what takes one.
func ExampleRWMutex_RLocker() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()

	catalogue := locks.RWMutex("catalogue")
	err := holdfast.Do(ctx, catalogue.RLocker(), func(ctx context.Context, lease *holdfast.Lease) error {
		fmt.Println("reading", lease.Name())
		return nil
	})
	fmt.Println(err)
	// Output:
	// reading catalogue
	// <nil>
}

// One goroutine can wait for many locks: readers come in together, and the writer after
// them.
func ExampleRWMutex_RLockAsync() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()
	ctx := context.Background()
	rates := locks.RWMutex("rates")

	one, two := <-rates.RLockAsync(ctx), <-rates.RLockAsync(ctx)
	write := rates.LockAsync(ctx)
	fmt.Println(one.Lease.Unlock(ctx), two.Lease.Unlock(ctx))
	fmt.Println((<-write).Lease.Unlock(ctx))
	// Output:
	// <nil> <nil>
	// <nil>
}

// Two callers that name the same locks in different orders cannot deadlock.
func ExampleNewMulti() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()
	ctx := context.Background()
	transfer, err := holdfast.NewMulti(locks.Mutex("account:7"), locks.Mutex("account:3"))
	if err != nil {
		log.Fatal(err)
	}
	lease, err := transfer.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lease.Name())
	fmt.Println(lease.Unlock(ctx))
	// Output:
	// account:3+account:7
	// <nil>
}

// All or none: if one of the locks is taken, none is held afterwards.
func ExampleMulti_TryLock() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()
	ctx := context.Background()
	taken, err := locks.Mutex("seat:2").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	seats, err := holdfast.NewMulti(locks.Mutex("seat:1"), locks.Mutex("seat:2"))
	if err != nil {
		log.Fatal(err)
	}
	_, err = seats.TryLock(ctx)
	fmt.Println(errors.Is(err, holdfast.ErrNotAcquired))

	one, err := locks.Mutex("seat:1").TryLock(ctx)
	fmt.Println(err)
	fmt.Println(one.Unlock(ctx), taken.Unlock(ctx))
	// Output:
	// true
	// <nil>
	// <nil> <nil>
}

// The members have the same name, each on a server of its own. One of three that is out of reach, or taken, is not in the way; two are.
func ExampleNewRedlock() {
	ctx := context.Background()
	var members []holdfast.Locker
	for range 3 {
		server := holdfasttest.Start() // three independent servers
		defer server.Close()
		members = append(members, server.NewManager().Mutex("report"))
	}
	report, err := holdfast.NewRedlock(members...)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := members[0].Lock(ctx); err != nil {
		log.Fatal(err)
	}
	lease, err := report.Lock(ctx) // two of three are enough
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lease.Name(), lease.Valid())
	fmt.Println(lease.Unlock(ctx))

	if _, err := members[1].Lock(ctx); err != nil {
		log.Fatal(err)
	}
	_, err = report.TryLock(ctx)
	fmt.Println(errors.Is(err, holdfast.ErrNotAcquired))
	// Output:
	// report true
	// <nil>
	// true
}

// A server without replicas acknowledges nothing: the grant is undone, and the error
// says why.
func ExampleWithReplicas() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager(holdfast.WithReplicas(1, 20*time.Millisecond))
	_, err := locks.Mutex("copied").TryLock(context.Background())
	var missing *holdfast.ReplicaError
	if errors.Is(err, holdfast.ErrUnavailable) && errors.As(err, &missing) {
		fmt.Println(missing.Acked, "replicas")
	}
	// Output: 0 replicas
}

// Of all replicas one does the work. Each of them runs this.
func ExampleElection_Lead() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()
	ctx, address := context.Background(), "10.0.0.7:8080"
	schedule := func(_ context.Context, term uint64) error {
		fmt.Println("leads in term", term)
		return nil
	}

	scheduler := locks.Election("scheduler")
	err := scheduler.Lead(ctx, address, func(ctx context.Context, term *holdfast.Term) error {
		return schedule(ctx, term.Number()) // until ctx ends: then another process may lead
	})
	fmt.Println(err)
	// Output:
	// leads in term 1
	// <nil>
}

// A leader says where it is, and others ask.
func ExampleElection_Campaign() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	leads, follows := server.NewManager().Election("writer"), server.NewManager().Election("writer")
	ctx := context.Background()

	term, err := leads.Campaign(ctx, "10.0.0.7:8080")
	if err != nil {
		log.Fatal(err)
	}
	seen, err := follows.Leader(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the leader is at", seen.Value, "in term", seen.Term, "and here:", seen.Self)
	fmt.Println("this process leads:", leads.Term() == term, follows.Term() != nil)

	if err := term.Proclaim(ctx, "10.0.0.8:8080"); err != nil {
		log.Fatal(err)
	}
	seen, err = follows.Leader(ctx)
	fmt.Println("the leader is at", seen.Value, err)

	fmt.Println(term.Resign(ctx))
	_, err = follows.Leader(ctx)
	fmt.Println(err)
	// Output:
	// the leader is at 10.0.0.7:8080 in term 1 and here: false
	// this process leads: true false
	// the leader is at 10.0.0.8:8080 <nil>
	// <nil>
	// holdfast: no leader: "writer"
}

// A follower sees each change.
func ExampleElection_Observe() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	leads, follows := server.NewManager().Election("writer"), server.NewManager().Election("writer")
	ctx := context.Background()

	term, err := leads.Campaign(ctx, "10.0.0.7:8080")
	if err != nil {
		log.Fatal(err)
	}
	for leader, err := range follows.Observe(ctx) {
		if err != nil {
			log.Print(err) // Redis does not answer; the loop goes on
			continue
		}
		if leader.Term == 0 {
			fmt.Println("none leads")
			break
		}
		fmt.Println("the leader is at", leader.Value)
		if err := term.Resign(ctx); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// the leader is at 10.0.0.7:8080
	// none leads
}
