package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
)

// The pause of a release runs once, and not when it is over. Close finds no pause that begins while it begins: such a one is
// short.
func TestPauses_RunUntilTheyAreOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eng, r, ended := new(Engine), new(lock.Repeated), 0
		pause := func(d time.Duration) {
			eng.pausing(r, d, func() {
				ended++
				eng.resumed(r)
			})
		}
		pause(time.Hour)
		pause(time.Minute) // it has begun before
		eng.resumed(r)
		time.Sleep(2 * time.Hour)
		if ended != 0 || len(eng.paused) != 0 {
			t.Errorf("%d pauses have come to their ends, %d are left", ended, len(eng.paused))
		}
		pause(time.Hour)
		pause(time.Minute)
		time.Sleep(time.Hour)
		synctest.Wait()
		if ended != 1 || len(eng.paused) != 0 {
			t.Errorf("%d pauses have come to their ends, %d are left", ended, len(eng.paused))
		}
		eng.closed = true
		pause(time.Hour)
		time.Sleep(lock.AwaitedPause)
		synctest.Wait()
		if ended != 2 {
			t.Error("a long pause while Close waits")
		}
	})
}
