package vredis_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// scriptChannels are those that a subscriber of both servers listens to: of the lock x, not of the lock y.
func scriptChannels() []string {
	all := []string{"holdfast_inbox:" + strings.TrimSuffix(strings.TrimPrefix(heardManager, "hf-"), ":"), "redisson_lock__channel:{x}", "redisson_rwlock:{x}", "redisson_sc:{x}"}
	for _, id := range redissonIDs {
		all = append(all, "redisson_lock__channel:{x}:"+id, "redisson_lock__channel:{y}:"+id)
	}
	return all
}

// compareScript runs a script from random states on both.
func compareScript(t *testing.T, p *pair, name, text string, a, b uint64) {
	chance := func(offset uint64, now int64) *plan {
		g := &plan{Rand: rand.New(rand.NewPCG(a, b+offset)), now: now}
		g.name = g.of("x", "y")
		g.rw = strings.HasPrefix(name, "rw_") || name == "renew_read" || slices.Contains([]string{"inspect", "force_release", "stay", "attach"}, name) && b%2 == 0
		g.permits = strings.HasPrefix(name, "permit_") || slices.Contains([]string{"inspect", "force_release"}, name) && b%4 == 1
		return g
	}
	setup := func(now int64) [][]string { return chance(0, now).state() }
	call := func(now int64) [][]string {
		g := chance(0, now)
		g.state()
		keys, argv := g.call(name)
		return [][]string{slices.Concat([]string{"eval", text, fmt.Sprint(len(keys))}, keys, argv)}
	}
	g := chance(0, 1)
	keys := append(g.all(), g.name, g.tombstones(), g.counter(), "{"+g.name+"}2", "q{"+g.name+"}", "d{"+g.name+"}", "t{"+g.name+"}")
	for _, prefix := range []string{heardManager, deafManager} {
		for n := range 6 {
			keys = append(keys, g.right(fmt.Sprint(prefix, n+1)))
		}
	}
	for _, id := range redissonIDs {
		keys = append(keys, g.right(id))
	}
	if d := p.compare(setup, call, keys); d != "" {
		t.Errorf("state %d %d of %s: %s", a, b, name, strings.ReplaceAll(d, fmt.Sprintf("%q", text), "<"+name+">"))
	}
}

// Each script of the library, from random states and with arguments some of which are none, answers as on a real
// server, leaves the same state, and sends the same messages. With -states=1000 it runs for longer.
func TestDifference_Scripts(t *testing.T) {
	scripts := libraryScripts(t)
	p := newPair(t, 3, scriptChannels())
	for _, name := range slices.Sorted(maps.Keys(scripts)) {
		t.Run(name, func(t *testing.T) {
			for i := range uint64(*states) {
				compareScript(t, p, name, scripts[name], *seed, i)
				if t.Failed() && !*keepOn {
					return
				}
			}
		})
	}
}

func FuzzScripts(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	scripts := libraryScripts(f)
	names := slices.Sorted(maps.Keys(scripts))
	p := newPair(f, 3, scriptChannels()) // each worker's process has its own
	f.Fuzz(func(t *testing.T, a, b uint64) {
		for _, name := range names {
			compareScript(t, p, name, scripts[name], a, b)
		}
	})
}
