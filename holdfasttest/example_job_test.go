package holdfasttest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

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

// A job that is skipped while another process runs it.
func Example_job() {
	server := holdfasttest.Start()
	defer server.Close()
	ctx := context.Background()
	first, second := server.NewManager(), server.NewManager() // two processes

	ran, err := runNightly(ctx, first, func(ctx context.Context) error {
		ran, err := runNightly(ctx, second, func(context.Context) error { return nil })
		fmt.Println("second, meanwhile:", ran, err)
		return nil
	})
	fmt.Println("first:", ran, err)
	fmt.Println("still held:", server.Held())
	// Output:
	// second, meanwhile: false <nil>
	// first: true <nil>
	// still held: []
}
