package lock

import "testing"

// A copy gives its room to another one when its connection is known to be dead, or when it ends, and once: the two can
// come in either order.
func TestCopies_GiveTheirRoomOnce(t *testing.T) {
	c := copies{flying: maxCopies}
	var first, second bool
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
