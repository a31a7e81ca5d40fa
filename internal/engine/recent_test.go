package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A name that comes again is that of the entry that was forgotten, unless the entry is of another kind of lock, or another name
// has taken its slot.
func TestRecent_FindsWhatWasForgotten(t *testing.T) {
	r := new(recent)
	terms := NewTerms(time.Second)
	handle := func(k Kind, name string, fencing bool) *named {
		n := &named{family: k, Mapped: name, Terms: new(Terms)}
		*n.Terms = terms
		n.Terms.Fencing = fencing
		return n
	}
	e := newEntry(handle(MutexKind, "a", false))
	if n := handle(MutexKind, "a", false); r.find(n) != nil {
		t.Error("found before it was forgotten")
	}
	r.keep(e)
	if n := handle(MutexKind, "a", false); r.find(n) != e || n.entry.Load() != e || n.wireKeys() != e.lock.Keys() {
		t.Error("not found")
	}
	if n := handle(MutexKind, "a", true); r.find(n) != e || n.wireKeys().Token == nil {
		t.Error("a handle with fencing has no key of tokens")
	}
	for _, n := range []*named{handle(FairKind, "a", false), handle(MutexKind, "b", false)} {
		if r.find(n) != nil || n.entry.Load() != nil {
			t.Errorf("found as %v %s", n.family, n.Mapped)
		}
	}
	other := ""
	for i := 0; other == ""; i++ {
		if name := fmt.Sprint(i); r.slot(name) == r.slot("a") {
			other = name
		}
	}
	if r.find(handle(MutexKind, other, false)) != nil {
		t.Error("found by a name with the same slot")
	}
	r.keep(newEntry(handle(MutexKind, other, false)))
	if r.find(handle(MutexKind, "a", false)) != nil {
		t.Error("found although another name has its slot")
	}
	long := strings.Repeat("x", longestRecent+1)
	r.keep(newEntry(handle(MutexKind, long, false)))
	if r.find(handle(MutexKind, long, false)) != nil {
		t.Error("an entry with a long name is kept")
	}
}
