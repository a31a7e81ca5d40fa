package vredis_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Ids of waiters and holders: of two managers of the library, of which one is subscribed, and of Redisson.
const (
	heardManager = "hf-11111111-aaaa-4aaa-8aaa-111111111111:"
	deafManager  = "hf-22222222-bbbb-4bbb-8bbb-222222222222:"
)

var redissonIDs = []string{"9f8e7d6c-0000-4000-8000-00000000000f:1", "9f8e7d6c-0000-4000-8000-00000000000f:27"}

// scriptChannels are those that a subscriber of both servers listens to: of the lock x, not of the lock z.
func scriptChannels() []string {
	all := []string{"holdfast_inbox:" + strings.Trim(heardManager, "hf-:"), "redisson_lock__channel:{x}", "redisson_rwlock:{x}", "redisson_sc:{x}"}
	for _, id := range redissonIDs {
		all = append(all, "redisson_lock__channel:{x}:"+id, "redisson_lock__channel:{z}:"+id)
	}
	return all
}

// settings match commands of a row's state that change the server, and not its data: troubles do so here.
var settings = regexp.MustCompile(`^(subscribe|acl|replicaof|config) `)

// short matches times of states that might end while a list runs.
var short = regexp.MustCompile(`(T\+|px |pexpire \S+ )(\d{3,4})\b`)

// odd are arguments that are none.
var odd = []string{"", "x", "-1", "0", "1.5", "5000 2 3 4", "99999999999999999999"}

// mixture makes random states and calls out of the rows of branches.
type mixture struct {
	*rand.Rand
	now  int64
	lock string // what x is called
}

// word writes out what a row says.
func (g *mixture) word(text string) string { return g.called(spell(text, g.now/1000)) }

// called has the lock's name in a word.
func (g *mixture) called(word string) string {
	if word == "x" {
		return g.lock
	}
	return strings.ReplaceAll(word, "{x}", "{"+g.lock+"}")
}

// command is one of a state. Of its times none ends while a list runs.
func (g *mixture) command(text string) []string {
	words := strings.Fields(spell(short.ReplaceAllString(text, "${1}${2}0"), g.now/1000))
	for i, word := range words {
		words[i] = g.called(word)
	}
	return words
}

// state is what some rows have before their calls, with a command left out here and there.
func (g *mixture) state(of []*branch) (all [][]string) {
	for range 1 + g.IntN(3) {
		row := of[g.IntN(len(of))]
		if g.IntN(4) == 0 {
			row = &branches[g.IntN(len(branches))]
		}
		for _, c := range row.state {
			if !settings.MatchString(c) && g.IntN(10) > 0 {
				all = append(all, g.command(c))
			}
		}
	}
	return all
}

// call is that of a row, now and then with an argument that is none, or with one less.
func (g *mixture) call(row *branch, scripts map[string]string) []string {
	call := row.call(scripts)
	for i := range call {
		if i != 1 { // the script
			call[i] = g.word(call[i])
		}
		if call[i] == "900" { // for how long it stays: times below a second are compared to the millisecond
			call[i] = "9000"
		}
	}
	odd, first := odd, len(call)-len(row.argv)
	if strings.HasPrefix(row.script, "leave") { // it has a loop as long as its fourth argument says
		odd = odd[:len(odd)-1]
	}
	if len(row.argv) > 0 && g.IntN(6) == 0 {
		call[first+g.IntN(len(row.argv))] = odd[g.IntN(len(odd))]
	}
	if len(row.argv) > 0 && g.IntN(60) == 0 {
		call = call[:len(call)-1]
	}
	return call
}

// compareScript runs a script from a random state on both.
func compareScript(t *testing.T, p *pair, name string, scripts map[string]string, a, b uint64) {
	var rows []*branch
	for i := range branches {
		if script, _, _ := strings.Cut(branches[i].script, " "); script == name {
			rows = append(rows, &branches[i])
		}
	}
	chance := func(now int64) *mixture {
		g := &mixture{Rand: rand.New(rand.NewPCG(a, b)), now: now, lock: "x"}
		if g.IntN(2) == 0 {
			g.lock = "z"
		}
		return g
	}
	setup := func(now int64) [][]string { return chance(now).state(rows) }
	call := func(now int64) [][]string {
		g := chance(now)
		g.state(rows)
		return [][]string{g.call(rows[g.IntN(len(rows))], scripts)}
	}
	keys := []string{}
	for _, right := range []string{"%1", "%2", "%3", "%R"} { // of readers that the script lets in
		keys = append(keys, chance(0).word(right))
	}
	for _, command := range setup(0) {
		keys = append(keys, command[1])
	}
	for _, command := range call(0) {
		n, _ := strconv.Atoi(command[2])
		keys = append(keys, command[3:3+n]...)
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	if d := p.compare(setup, call, keys); d != "" {
		t.Fatalf("state %d %d of %s: %s", a, b, name, strings.ReplaceAll(d, fmt.Sprintf("%q", scripts[name]), "<"+name+">"))
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
				compareScript(t, p, name, scripts, *seed, i)
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
			compareScript(t, p, name, scripts, a, b)
		}
	})
}
