package holdfast_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// All connections die right after the first lock, while the manager is still opening the others that it keeps. Close
// does not wait for a read timeout on one of them: go-redis would give none of them up before the test has ended.
func TestClose_AfterTheFirstLock(t *testing.T) {
	t.Parallel()
	for _, locked := range []bool{false, true} {
		atLast(t, func() error { // a machine may stand still for longer than Close waits
			p := redistest.Start(t).Proxy(t)
			m, err := holdfast.New(p.ClientWith(t, func(o *redis.Options) { o.ReadTimeout = time.Hour }))
			if err != nil {
				return err
			}
			opening := p.HoldFirstReply(redistest.Command("ping"))
			lease := mustLock(t, m.Mutex("a"))
			opening.Wait(t)
			if !locked {
				mustUnlock(t, lease)
			}
			p.Forget()
			return m.Close(context.Background())
		})
	}
}
