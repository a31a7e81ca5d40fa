package holdfast_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

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

// A process says what it is, and an operator sees that beside the owner id.
func ExampleWithIdentity() {
	server := holdfasttest.Start() // a Redis in this program; in yours: holdfast.New(client, holdfast.WithIdentity("shop"))
	defer server.Close()
	shop := server.NewManager(holdfast.WithIdentity("shop"))
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
	// Output: held by shop true
}
