package holdfast_test

import (
	"context"
	"fmt"
	"log"

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
