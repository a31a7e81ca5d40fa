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

// The members have the same name, each on a server of its own.
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
	lease, err := report.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lease.Name(), lease.Valid())
	fmt.Println(lease.Unlock(ctx))
	// Output:
	// report true
	// <nil>
}

// One member of three that is out of reach, or taken, is not in the way; two are.
func ExampleRedlock_TryLock() {
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
	first, err := members[0].Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	lease, err := report.Lock(ctx) // two of three are enough
	fmt.Println(err)
	fmt.Println(lease.Unlock(ctx))

	second, err := members[1].Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = report.TryLock(ctx)
	fmt.Println(errors.Is(err, holdfast.ErrNotAcquired))
	fmt.Println(first.Unlock(ctx), second.Unlock(ctx))
	// Output:
	// <nil>
	// <nil>
	// true
	// <nil> <nil>
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
