package lock

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// What may still be under way is refused for a while by what its release leaves behind: so that is repeated
// for at least as long, however soon the lock itself would be gone.
func TestRelease_LastsForAsLongAsACopyMayCome(t *testing.T) {
	for _, unclear := range []bool{false, true} {
		var m Moment
		m.Begin(releasing{}, new(Settings))
		m.Date(time.Now())
		h := &Hold{Lock: new(Lock), Terms: &Terms{Options: Options{TTL: time.Second}}, copies: copies{unclear: unclear}}
		left := newRelease(&m, h, NothingLeft).until.Sub(m.Now())
		if least := Burial; unclear && left < least || !unclear && left > least {
			t.Errorf("unclear %v: given up after %v", unclear, left)
		}
	}
}

// releasing is a world of which only releases are asked.
type releasing struct{ World }

func (releasing) Facts() Facts { return Facts{} }

// However long the pauses of a request have grown, one is short while a call waits for the answer: a request of before may
// fail after that call began. The engine sees to those that Close waits for.
func TestRepeated_AwaitedPausesAreShort(t *testing.T) {
	m := &Moment{set: &Settings{Chance: func(int64) int64 { return 0 }}}
	r := new(Repeated)
	for range 10 {
		r.pause(m)
	}
	if d := r.pause(m); d < 300*time.Millisecond {
		t.Errorf("no call waits: %v", d)
	}
	r.later = append(r.later, "an Unlock")
	if d := r.pause(m); d > AwaitedPause {
		t.Errorf("an Unlock waits: %v", d)
	}
}

// However many come before they are asked for, each is there, once.
func TestEarlyNotices_NoneIsForgotten(t *testing.T) {
	var early earlyNotices
	const n = 10_000
	now := time.Now()
	for i := range uint64(n) {
		early.keep(wire.Notice{Number: i}, now.Add(time.Duration(i)*MaxClaim/n))
	}
	for i := range uint64(n) {
		if x := early.take(i); x == nil || x.Number != i {
			t.Fatalf("of %d there is %v", i, x)
		}
		if x := early.take(i); x != nil {
			t.Fatalf("of %d there is another one", i)
		}
	}
}

// No request takes the messages of claims that have been given up.
func TestEarlyNotices_GoWithTheirGeneration(t *testing.T) {
	var early earlyNotices
	now := time.Now()
	for i := range uint64(100) {
		early.keep(wire.Notice{Number: i}, now.Add(time.Duration(i)*MaxClaim/2))
	}
	if n := len(early.young) + len(early.old); n > 6 {
		t.Errorf("%d are kept, of which two come in the time of a claim", n)
	}
	if early.take(97) == nil {
		t.Error("one that is younger than a claim is gone")
	}
}

// A copy gives its room to another one when its connection is known to be dead, or when it ends, and once: the two can
// come in either order.
func TestCopies_GiveTheirRoomOnce(t *testing.T) {
	c := copies{flying: maxCopies}
	var first, second flight
	if !c.full() {
		t.Error("there is room for one more than there may be")
	}
	c.strands(&first)
	if c.full() {
		t.Error("a copy on a dead connection takes room")
	}
	c.flying++ // the one that takes its place
	if !c.full() {
		t.Error("two copies have taken the place of one")
	}
	c.ends(&first)
	if !c.full() {
		t.Error("the copy has given its room twice, stranded and ended")
	}
	c.ends(&second)
	c.strands(&second)
	if c.flying++; !c.full() {
		t.Error("the copy has given its room twice, ended and stranded")
	}
}
