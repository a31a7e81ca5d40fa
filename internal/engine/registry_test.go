package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// names makes handles and entries that send nothing.
type names struct {
	t *testing.T
	*Engine
}

func newNames(t *testing.T) names {
	return names{t, &Engine{entries: [lock.Families]registry{{}, {}, {}}}}
}

func (x names) handle(k lock.Kind, name string, fencing bool) *named {
	n := &named{engine: x.Engine, family: k, Mapped: name, Terms: new(Terms)}
	n.Name = name
	*n.Terms = NewTerms(time.Second)
	n.Terms.Fencing = fencing
	return n
}

// enter is a new handle's, whose entry has been forgotten or is new.
func (x names) enter(k lock.Kind, name string) *entry {
	x.t.Helper()
	n := x.handle(k, name, false)
	e, v := x.entry(n)
	if v != nil || n.entry.Load() != e || n.wireKeys() != e.lock.Keys {
		x.t.Fatalf("%s: %v; the handle knows %v", name, v, n.entry.Load())
	}
	if e.listing == unused && !x.recallLocked(e) {
		x.t.Fatalf("%s: not recalled", name)
	}
	if x.existing(k, name) != e {
		x.t.Fatalf("%s: entered, and not in use", name)
	}
	return e
}

func (x names) leave(e *entry) {
	x.t.Helper()
	x.forget(e)
	if x.existing(e.lock.Family, e.mapped()) != nil {
		x.t.Fatalf("%s: forgotten, and in use", e.mapped())
	}
}

// A name that comes again has the entry that was forgotten, unless it is of another kind of lock. What is forgotten is not in use.
func TestRegistry_RecallsWhatWasForgotten(t *testing.T) {
	x := newNames(t)
	e := x.enter(lock.MutexKind, "a")
	for range 3 {
		redistest.Want(t, len(x.snapshot()), 1, "%d entries in use, want 1")
		x.leave(e)
		x.forget(e) // as a late answer does
		redistest.Want(t, len(x.snapshot()), 0, "%d entries in use, want none")
		if again := x.enter(lock.MutexKind, "a"); again != e {
			t.Fatal("another entry")
		}
	}
	x.leave(e)
	if x.enter(lock.FairKind, "a") == e || x.enter(lock.MutexKind, "b") == e {
		t.Error("the entry of another lock")
	}
	n := x.handle(lock.MutexKind, "a", true)
	if again, _ := x.entry(n); again != e || n.wireKeys() != e.lock.Keys {
		t.Error("a handle with fencing has names of its own")
	}
	redistest.Want(t, len(x.recent.ring), 1, "one entry is forgotten, and %d have a place")
}

// An entry is kept until so many others were forgotten. One that is in use then stays, and gets a place again.
func TestRegistry_KeepsTheLatest(t *testing.T) {
	x := newNames(t)
	first, busy := x.enter(lock.MutexKind, "first"), x.enter(lock.MutexKind, "busy")
	x.leave(first)
	x.leave(busy)
	x.enter(lock.MutexKind, "busy")
	for i := range mostRecent {
		x.leave(x.enter(lock.MutexKind, fmt.Sprint(i)))
	}
	if n := len(x.entries[lock.MutexKind]); n != mostRecent+1 {
		t.Errorf("%d entries, want %d and one in use", n, mostRecent)
	}
	if x.enter(lock.MutexKind, "busy") != busy {
		t.Error("an entry in use was dropped")
	}
	if slices.Contains(x.recent.ring, busy) {
		t.Error("no other entry has got its place")
	}
	x.leave(busy)
	if x.enter(lock.MutexKind, "busy") != busy || !slices.Contains(x.recent.ring, busy) {
		t.Error("not kept again")
	}
	second := x.enter(lock.MutexKind, "first")
	if second == first {
		t.Fatal("kept for too long")
	}
	x.forget(first) // by a late answer: it is not the entry of the name any more
	if x.recallLocked(first) || x.existing(lock.MutexKind, "first") != second {
		t.Error("a name has two entries")
	}
	long := strings.Repeat("x", longestRecent+1)
	e := x.enter(lock.MutexKind, long)
	x.leave(e)
	if !x.recallLocked(e) { // the handle that has left it
		t.Error("not recalled")
	}
	x.leave(e)
	if x.enter(lock.MutexKind, long) == e {
		t.Error("an entry with a long name is kept")
	}
}

func TestTokenMarks_AreBoundedAndNeverGoBack(t *testing.T) {
	var marks tokenMarks
	marks.saw("a", 7)
	marks.saw("a", 5)
	redistest.Want(t, marks.seen("a"), 7, "the mark went back to %d")
	for i := range tokenGeneration {
		marks.saw(fmt.Sprint(i), 1)
	}
	redistest.Want(t, marks.seen("a"), 7, "forgotten within a generation")
	marks.saw("a", 6)
	for i := range tokenGeneration - 1 {
		marks.saw(fmt.Sprint("b", i), 1)
	}
	marks.saw("c", 1)
	redistest.Want(t, marks.seen("a"), 7, "the mark went back to %d with the generation")
	for i := range 10 * tokenGeneration {
		marks.saw(fmt.Sprint("x", i), 1)
	}
	redistest.WantMost(t, len(marks.young)+len(marks.old), 2*tokenGeneration, "%d names are remembered")
}

// Each event of a lock that begins to linger while too many do ends another one, whatever has become of those before.
func TestLingering_EachOfTheOldestOnce(t *testing.T) {
	var l lingering
	holds, entries := make([]lock.Hold, mostLingering+3), make([]entry, mostLingering+3)
	for i := range holds {
		entries[i].run()
		oldest := l.change(&entries[i], &holds[i])
		var want *lock.Hold
		if over := i - mostLingering; over >= 0 {
			want = &holds[over]
		}
		if oldest != want {
			t.Fatalf("the %d. is to end %p, want %p", i+1, oldest, want)
		}
	}
	for i := range entries {
		l.change(&entries[i], nil)
		l.change(&entries[i], nil)
	}
	if l.n != 0 || l.oldest != nil || l.newest != nil {
		t.Errorf("%d are left", l.n)
	}
}
