package holdfast_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A release that Redis does not answer for long is repeated after pauses, which have grown longer than an Unlock or Close
// waits. So what waits for its answer ends the pause.
func TestRelease_PausesEndForUnlockAndClose(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		for _, way := range []string{"Unlock", "Close"} {
			m, p := managerVia(t, srv, holdfast.WithLease(2*time.Second))
			var leases []*holdfast.Lease
			for i := range 20 {
				leases = append(leases, mustLock(t, m.Mutex(fmt.Sprint(way, i))))
			}
			p.AnswerError(func(cmd []string) bool { _, _, ok := redistest.ScriptCall(cmd); return ok }, math.MaxInt, "upstream failure")
			var calls sync.WaitGroup
			for _, l := range leases {
				calls.Go(func() { wantErr(t, l.Unlock(t.Context()), holdfast.ErrUnavailable, holdfast.ErrLeaseLost) })
			}
			calls.Wait()
			time.Sleep(time.Second) // of the outage, which is shorter than the lease
			p.Heal()
			if way == "Close" {
				if err := m.Close(context.Background()); err != nil {
					t.Error(err)
				}
				continue
			}
			for _, l := range leases {
				calls.Go(func() {
					if err := l.Unlock(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			calls.Wait()
		}
	})
}
