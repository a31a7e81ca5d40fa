package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Redis cannot be reached, in one way or another, while a lease ends that was valid when Unlock was called, and for some
// time after that. Whatever lock it is of, no call of Unlock says that it was lost, and it is not counted as lost.
func TestUnlock_AtTheLastMoment(t *testing.T) {
	t.Parallel()
	script := func(cmd []string) bool { _, _, ok := redistest.ScriptCall(cmd); return ok }
	outages := map[string]func(*redistest.Proxy){
		"refused":  func(p *redistest.Proxy) { p.Refuse(true); p.Cut() },
		"silent":   func(p *redistest.Proxy) { p.BlackHole(true) },
		"frozen":   func(p *redistest.Proxy) { p.Freeze(true) },
		"errors":   func(p *redistest.Proxy) { p.AnswerError(script, math.MaxInt, "upstream failure") },
		"no reply": func(p *redistest.Proxy) { p.LoseReply(script, math.MaxInt) },
	}
	for kind, of := range spoiltKinds {
		for outage, begin := range outages {
			for _, before := range []time.Duration{40 * time.Millisecond, 400 * time.Millisecond} {
				for _, length := range []time.Duration{130 * time.Millisecond, 700 * time.Millisecond} {
					t.Run(fmt.Sprint(kind, "/", outage, "/", before, " before/", length), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							s := newSpoilt(t, of, holdfast.WithFixedLease(2*time.Second))
							lease := mustLock(t, s.lock)
							for _, p := range s.proxies {
								begin(p)
								time.AfterFunc(time.Until(lease.Deadline())-before+length, p.Heal)
							}
							time.Sleep(time.Until(lease.Deadline()) - before)
							if err := lease.Unlock(t.Context()); err != nil && !errors.Is(err, holdfast.ErrUnavailable) {
								t.Error(err)
							}
							time.Sleep(5 * time.Second)
							if err := lease.Unlock(context.Background()); errors.Is(err, holdfast.ErrLeaseLost) {
								t.Errorf("again: %v", err)
							}
							for _, m := range s.managers {
								if n := m.Stats().Lost; n != 0 {
									t.Errorf("%d are counted as lost", n)
								}
							}
						})
					})
				}
			}
		}
	}
}
