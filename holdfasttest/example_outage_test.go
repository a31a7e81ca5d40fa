package holdfasttest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

// An outage while the lock is held. One that ends before the deadline of the lease does no harm, a longer one ends the lease
// there. Under testing/synctest the same takes no time, with any lease.
func Example_outage() {
	server := holdfasttest.Start()
	defer server.Close()
	locks := server.NewManager(holdfast.WithLease(3 * time.Second))
	lease := server.Hold(locks.Mutex("job"))

	server.Down()
	_, err := locks.Mutex("other").TryLock(context.Background())
	fmt.Println("the lock may or may not be held:", errors.Is(err, holdfast.ErrUnavailable))
	server.Up()
	fmt.Println("held after a short outage:", lease.Valid())

	server.Down()
	<-lease.Done()
	var lost *holdfast.LostError
	fmt.Println("lost in a long one:", errors.As(lease.Err(), &lost), lost.Reason)
	// Output:
	// the lock may or may not be held: true
	// held after a short outage: true
	// lost in a long one: true deadline
}
