package holdfasttest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

// reindex writes page after page, and stops when it has lost its lock.
func reindex(ctx context.Context, locks *holdfast.Manager, pages int, write func(ctx context.Context, page int) error) error {
	return holdfast.Do(ctx, locks.Mutex("index"), func(ctx context.Context, _ *holdfast.Lease) error {
		for page := range pages {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if err := write(ctx, page); err != nil {
				return err
			}
		}
		return nil
	})
}

// A lock that is lost in the middle of the work: the context ends, and the work stops.
func Example_loss() {
	server := holdfasttest.Start()
	defer server.Close()

	var written []int
	err := reindex(context.Background(), server.NewManager(), 100, func(_ context.Context, page int) error {
		written = append(written, page)
		if page == 2 {
			server.Lose("index")
		}
		return nil
	})
	fmt.Println(written, errors.Is(err, holdfast.ErrLeaseLost))
	// Output: [0 1 2] true
}
