package holdfast_test

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

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

// A label says in lists of locks what a caller does.
func ExampleWithLabel() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client)
	defer server.Close()
	locks := server.NewManager()

	ctx := holdfast.WithLabel(context.Background(), "checkout")
	lease, err := locks.Mutex("stock:42").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Unlock(ctx)
	for l := range locks.Locks() {
		fmt.Println(l.Name, "is held by", l.Label)
	}
	// Output: stock:42 is held by checkout
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
