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

// A caller leaves while its request is on its way, over a connection that dies with the answer: what the request may have been granted is
// given back before Close says that all is.
func TestClose_GivesBackWhatADeadConnectionHasTaken(t *testing.T) {
	t.Parallel()
	atLast(t, func() error {
		srv := redistest.Start(t)
		p := srv.Proxy(t)
		m, err := holdfast.New(p.Client(t))
		if err != nil {
			return err
		}
		mustUnlock(t, mustLock(t, m.Mutex("a")))
		answer := p.HoldFirstReply(scriptOn("b", "lock_acquire"))
		ctx, leave := context.WithCancel(context.Background())
		left := make(chan struct{})
		go func() {
			_, _ = m.Mutex("b").Lock(ctx)
			close(left)
		}()
		answer.Wait(t)
		leave()
		<-left
		p.Forget()
		if err := m.Close(context.Background()); err != nil {
			return err
		}
		if n := srv.Client(t).Exists(context.Background(), "b").Val(); n != 0 {
			t.Error("Close says that all was given back, and Redis has the lock")
		}
		return nil
	})
}
