package explore

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
)

var (
	deepFlag  = flag.Bool("deep", false, "explore with one more fault, which takes hours")
	pathFlag  = flag.String("path", "", "of one world: print what happens on that path")
	seedFlag  = flag.Uint64("seed", 1, "the first seed of walks")
	walksFlag = flag.Int("walks", 10, "walks through each large world")
)

// anyFault is all faults but those of special worlds.
var anyFault = []Fault{Leaves, Fails, Loses, Strands, Mute, Cut, Stops, Dies}

// Names of locks, one of each family, and two mutexes.
func mutex() []Name { return []Name{{Name: "x", Kind: lock.MutexKind}} }
func fair() []Name  { return []Name{{Name: "x", Kind: lock.FairKind}} }
func rw() []Name    { return []Name{{Name: "x", Kind: lock.WriteKind}} }
func permits(n int) []Name {
	return []Name{{Name: "x", Kind: lock.SemaphoreKind, Permits: n}}
}
func two() []Name {
	return []Name{{Name: "x", Kind: lock.MutexKind}, {Name: "y", Kind: lock.MutexKind}}
}

const (
	fairly = lock.FairKind
	write  = lock.WriteKind
	read   = lock.ReadKind
)

// worlds are so small that all their states can be visited.
func worlds() []*Plan {
	return []*Plan{
		{Name: "two processes", Locks: mutex(), Callers: []Caller{{}, {Process: 1}}, Faults: anyFault, Most: 1},
		{Name: "two processes, slow", Locks: mutex(), Callers: []Caller{{Fixed: true}, {Process: 1, Fixed: true}}},
		{Name: "two of three in one process", Locks: mutex(), Callers: []Caller{{}, {Process: 1}, {Process: 1}}, Faults: []Fault{Leaves}, Most: 1},
		{Name: "two and two", Locks: mutex(), Callers: []Caller{{}, {Process: 1}, {}, {Process: 1}}, Faults: []Fault{Leaves}, Most: 1, Ordered: true},
		{Name: "fixed leases", Locks: mutex(), Callers: []Caller{{Fixed: true}, {Fixed: true}, {Process: 1, Fixed: true}}},
		{Name: "a lost message", Locks: mutex(), Callers: []Caller{{}, {Process: 1}}, Faults: []Fault{Mute, Cut}, Most: 1},
		{Name: "a late copy", Locks: mutex(), Callers: []Caller{{}}, Faults: []Fault{Fails, Leaves}, Most: 2, Late: 1},
		{Name: "the dead", Locks: mutex(), Callers: []Caller{{}, {Process: 1}, {Process: 2}}, Faults: []Fault{Dies}, Most: 1, Ordered: true},
		{Name: "a replica's messages", Locks: mutex(), Callers: []Caller{{}, {Process: 1}}, Faults: []Fault{Uncounted}, Most: 1, Ordered: true},
		{Name: "deaf", Locks: mutex(), Callers: []Caller{{}, {Process: 1}}, Deaf: true, Faults: []Fault{Cut}, Most: 1},
		{Name: "TryLock", Locks: mutex(), Callers: []Caller{{}, {Once: true}, {Process: 1, Once: true}}, Faults: []Fault{Fails}, Most: 1},
		{Name: "fair", Locks: fair(), Callers: []Caller{{Kind: fairly}, {Process: 1, Kind: fairly}, {Process: 1, Kind: fairly}}, Faults: []Fault{Leaves}, Most: 1, Ordered: true},
		{Name: "places", Locks: fair(), Callers: []Caller{{Kind: fairly}, {Process: 1, Kind: fairly}}, Faults: []Fault{Leaves, Cut}, Most: 2, Ordered: true},
		{Name: "readers and a writer", Locks: rw(), Callers: []Caller{{Kind: write}, {Process: 1, Kind: read}, {Process: 1, Kind: read}}, Faults: []Fault{Leaves, Fails}, Most: 1},
		{Name: "readers of two processes", Locks: rw(), Callers: []Caller{{Kind: read}, {Process: 1, Kind: read}, {Process: 1, Kind: write}}},
		{Name: "downgrade", Locks: rw(), Callers: []Caller{{Kind: write, Then: []Then{ReentersToRead}}, {Process: 1, Kind: read}}},
		{Name: "fencing", Locks: mutex(), Callers: []Caller{{Fencing: true}, {Fencing: true}, {Process: 1, Fencing: true}}},
		{Name: "fencing, with faults", Locks: mutex(), Callers: []Caller{{Fencing: true}, {Process: 1, Fencing: true}}, Faults: []Fault{Fails, Mute}, Most: 1},
		{Name: "fenced readers", Locks: rw(), Callers: []Caller{{Kind: read, Fencing: true}, {Process: 1, Kind: write, Fencing: true}}},
		{Name: "Extend", Locks: mutex(), Callers: []Caller{{Then: []Then{Extends}}, {Process: 1}}, Faults: []Fault{Fails}, Most: 1},
		{Name: "WithMaxHold", Locks: mutex(), Callers: []Caller{{MaxHold: time.Second}}, Late: 3},
		{Name: "WithHoldAtLeast", Locks: mutex(), Callers: []Caller{{AtLeast: time.Second}, {Process: 1}}, Faults: []Fault{Fails}, Most: 1},
		{Name: "WithLinger", Locks: mutex(), Callers: []Caller{{Linger: time.Second}, {Process: 1}, {Linger: time.Second}}, Faults: []Fault{Mute, Dies}, Most: 1, Ordered: true},
		{Name: "asking the holder", Locks: mutex(), Callers: []Caller{{Linger: time.Second}, {Process: 1, Once: true}}, Faults: []Fault{Mute}, Most: 1},
		{Name: "re-entry", Locks: mutex(), Callers: []Caller{{Then: []Then{Reenters}, Fencing: true}, {Process: 1, Fencing: true}}, Faults: []Fault{Fails}, Most: 1},
		{Name: "Close", Locks: mutex(), Closes: []int{0}, Callers: []Caller{{}, {Process: 1}}, Faults: []Fault{Fails}, Most: 1},
		{Name: "Multi", Locks: two(), Callers: []Caller{{Locks: []int{0, 1}}, {Process: 1, Locks: []int{0, 1}}}},
		{Name: "replicas", Locks: mutex(), Replicas: true, Callers: []Caller{{}, {Process: 1}}, Faults: []Fault{Unreplicated, Fails}, Most: 1},
		{Name: "beside Redisson", Locks: mutex(), Callers: []Caller{{}, {}, {Java: true}}, Faults: []Fault{Leaves}, Most: 1},
		{Name: "permits", Locks: permits(2), Callers: []Caller{{Permits: 2}, {Process: 1}}, Faults: anyFault, Most: 1},
		{Name: "two and one", Locks: permits(2), Callers: []Caller{{Permits: 2}, {}, {Process: 1}}, Faults: []Fault{Leaves}, Most: 1, Ordered: true},
		{Name: "a late copy of permits", Locks: permits(2), Callers: []Caller{{Permits: 2}}, Faults: []Fault{Fails, Leaves}, Most: 2, Late: 1},
		{Name: "turns of three", Locks: permits(2), Callers: []Caller{{}, {Process: 1, Permits: 2}, {Process: 2}}, Ordered: true},
		{Name: "Extend of permits", Locks: permits(2), Callers: []Caller{{Permits: 2, Then: []Then{Extends}}, {Process: 1}}},
		{Name: "WithIdleTTL", Locks: permits(2), Idle: 3 * time.Second, Callers: []Caller{{Permits: 2}, {Process: 1}}, Faults: []Fault{Dies, Deletes}, Most: 1},
		{Name: "permits that stay", Locks: permits(2), Callers: []Caller{{Permits: 2, AtLeast: time.Second}, {Process: 1}}, Faults: []Fault{Fails}, Most: 1},
		{Name: "a deleted number", Locks: permits(2), Callers: []Caller{{}, {Process: 1, Permits: 2}}, Faults: []Fault{Deletes, Fails}, Most: 1},
		{Name: "SetPermits", Locks: permits(2), Sets: []int{1, 2}, Callers: []Caller{{Permits: 2}, {Process: 1}}, Faults: []Fault{Fails}, Most: 1},
		{Name: "permits of the dead, beside Redisson", Locks: permits(2), Callers: []Caller{{Permits: 2}, {Process: 1}, {Java: true}}, Faults: []Fault{Dies}, Most: 1},
		{Name: "beside two of Redisson's", Locks: mutex(), Callers: []Caller{{Fixed: true}, {Fixed: true}, {Java: true}, {Java: true}}, Ordered: true},
	}
}

// large worlds are walked through by chance.
func large() []*Plan {
	var all []*Plan
	add := func(name string, locks []Name, faults []Fault, callers ...Caller) *Plan {
		p := &Plan{Name: name, Locks: locks, Callers: callers, Faults: faults, Most: 5, Late: 12}
		all = append(all, p)
		return p
	}
	many := func(kinds ...lock.Kind) (all []Caller) {
		for i, k := range kinds {
			all = append(all, Caller{Process: i % 3, Kind: k})
		}
		return all
	}
	m, f := lock.MutexKind, fairly
	add("mutex", mutex(), anyFault, many(m, m, m, m, m, m, m, m)...)
	add("fair", fair(), anyFault, many(f, f, f, f, f, f, f, f)...)
	add("readers and writers", rw(), anyFault, many(read, write, read, read, read, write, read, write)...)
	add("stops", fair(), []Fault{Stops}, many(f, f, f, f, f, f)...)
	add("slow", mutex(), nil, Caller{Fixed: true}, Caller{Process: 1, Fixed: true}, Caller{}, Caller{Process: 1}, Caller{})
	add("slow grants", mutex(), nil, many(m, m, m, m)...)
	add("slow readers", rw(), nil, many(read, read, read, write)...)
	add("limits", mutex(), nil, Caller{MaxHold: time.Second}, Caller{Process: 1, MaxHold: time.Second}, Caller{Process: 2})
	add("slices", mutex(), nil, Caller{}, Caller{Process: 1}, Caller{}, Caller{}, Caller{}, Caller{}, Caller{}, Caller{})
	add("fencing", mutex(), anyFault, Caller{Fencing: true}, Caller{Process: 1, Fencing: true}, Caller{Fencing: true}, Caller{Process: 1, Fencing: true}, Caller{Process: 2, Fencing: true})
	add("downgrades", rw(), anyFault, Caller{Kind: write, Then: []Then{ReentersToRead}}, Caller{Process: 1, Kind: read}, Caller{Process: 1, Kind: write, Then: []Then{ReentersToRead, Extends}}, Caller{Kind: read})
	add("ends", mutex(), anyFault, Caller{MaxHold: time.Second}, Caller{Process: 1, Then: []Then{Extends}}, Caller{MaxHold: 2 * time.Second, Then: []Then{Extends, Reenters}}, Caller{Process: 1, Fixed: true})
	add("at least", mutex(), anyFault, Caller{AtLeast: time.Second}, Caller{Process: 1, AtLeast: 100 * time.Millisecond}, Caller{Process: 2}, Caller{Process: 1})
	add("linger", mutex(), anyFault, Caller{Linger: time.Second}, Caller{Process: 1, Linger: time.Second}, Caller{Linger: time.Second}, Caller{Process: 1}, Caller{Process: 2, Once: true}).Closes = []int{0}
	add("linger to read", rw(), anyFault, Caller{Kind: read, Linger: time.Second}, Caller{Process: 1, Kind: write, Linger: time.Second}, Caller{Kind: read, Linger: time.Second}, Caller{Process: 1, Kind: read, Once: true})
	add("Multi", two(), anyFault, Caller{Locks: []int{0, 1}}, Caller{Process: 1, Locks: []int{0, 1}}, Caller{Locks: []int{1}}, Caller{Process: 1}, Caller{Process: 2, Locks: []int{0, 1}})
	add("replicas", mutex(), slices.Concat(anyFault, []Fault{Unreplicated}), many(m, m, m, m, m)...).Replicas = true
	add("Close", fair(), anyFault, many(f, f, f, f, f, f)...).Closes = []int{0, 1}
	add("TryLock", fair(), anyFault, Caller{Kind: f}, Caller{Process: 1, Kind: f, Once: true}, Caller{Process: 1, Kind: f}, Caller{Kind: f, Once: true}, Caller{Process: 1, Kind: f})
	some := func(more ...Caller) []Caller {
		return append([]Caller{{Permits: 2}, {Process: 1, Permits: 3}, {Process: 2}, {}, {Process: 1}, {Process: 2, Permits: 2}, {Process: 1, Once: true}}, more...)
	}
	add("permits", permits(3), anyFault, some()...)
	add("permits that change", permits(3), slices.Concat(anyFault, []Fault{Deletes}), some()...).Sets = []int{2, 4, 1, 3}
	add("permits beside Redisson", permits(3), anyFault, some(Caller{Java: true}, Caller{Permits: 2, AtLeast: time.Second})...)
	add("deleted", mutex(), []Fault{Deletes, Fails, Leaves}, many(m, m, m, m, m)...)
	add("beside Redisson", mutex(), anyFault, Caller{}, Caller{Process: 1}, Caller{}, Caller{Java: true}, Caller{Process: 1})
	return all
}

// Each promise is kept in each state of these worlds.
func TestStates(t *testing.T) {
	for _, p := range worlds() {
		t.Run(p.Name, func(t *testing.T) {
			if *pathFlag != "" {
				t.Log("\n" + Retrace(p, steps(t, *pathFlag)))
				return
			}
			if *deepFlag {
				p.Most, p.Late = p.Most+1, p.Late+1
			}
			t.Parallel()
			began := time.Now()
			r := Explore(p)
			if r.Broken != "" {
				t.Fatalf("red: %s\n%s\nagain: -run 'TestStates/%s' -args -path %s", r.Broken, Retrace(p, r.Path), strings.ReplaceAll(p.Name, " ", "_"), text(r.Path))
			}
			t.Logf("%d states, %d steps in %v", r.States, r.Steps, time.Since(began).Round(time.Millisecond))
		})
	}
}

// And on each of these walks through worlds whose states are too many.
func TestWalks(t *testing.T) {
	for _, p := range large() {
		t.Run(p.Name, func(t *testing.T) {
			all := 0
			for n := range uint64(*walksFlag) {
				seed := *seedFlag + n
				r := Walk(p, seed, 150, nil)
				if all += r.Steps; r.Broken != "" {
					t.Fatalf("red: %s\n%s\nagain: -run 'TestWalks/%s' -args -walks 1 -seed %d", r.Broken, trace(p, seed), strings.ReplaceAll(p.Name, " ", "_"), seed)
				}
			}
			t.Logf("%d walks of %d steps", *walksFlag, all)
		})
	}
}

// trace is what happens on a walk.
func trace(p *Plan, seed uint64) string {
	var b strings.Builder
	r := Walk(p, seed, 150, func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) })
	return b.String() + r.Broken
}

// The same seed is the same walk, and another one is another.
func TestWalks_Repeat(t *testing.T) {
	for _, p := range large() {
		if a, b := trace(p, 7), trace(p, 7); a != b || a == "" {
			t.Errorf("%s: two walks of one seed differ:\n%s\n\n%s", p.Name, a, b)
		}
		if trace(p, 7) == trace(p, 8) {
			t.Errorf("%s: two seeds are one walk", p.Name)
		}
	}
}

func text(path []int) string {
	all := make([]string, len(path))
	for i, n := range path {
		all[i] = strconv.Itoa(n)
	}
	return strings.Join(all, ",")
}

func steps(t *testing.T, text string) (path []int) {
	for s := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		path = append(path, n)
	}
	return path
}
