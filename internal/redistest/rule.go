package redistest

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Match selects requests by their name and arguments, as the client sent them. One that makes several calls of a script
// is selected for each of them as well, as if it were sent alone.
// It is called with the proxy locked: it must not use the proxy, and must not
// change cmd.
type Match func(cmd []string) bool

// Command matches requests by name, whatever its case.
func Command(name string) Match {
	return func(cmd []string) bool { return strings.EqualFold(cmd[0], name) }
}

// Containing matches requests with sub in the name or in any argument.
func Containing(sub string) Match {
	return func(cmd []string) bool {
		return slices.ContainsFunc(cmd, func(arg string) bool { return strings.Contains(arg, sub) })
	}
}

// All matches requests that every one of ms matches.
func All(ms ...Match) Match {
	return func(cmd []string) bool {
		return !slices.ContainsFunc(ms, func(m Match) bool { return !m(cmd) })
	}
}

// ScriptCall splits a call of a script into its keys and its other arguments. It reports false for other commands.
func ScriptCall(cmd []string) (keys, argv []string, ok bool) {
	if !Command("evalsha")(cmd) && !Command("eval")(cmd) || len(cmd) < 3 {
		return nil, nil, false
	}
	n, err := strconv.Atoi(cmd[2])
	if err != nil || n < 0 || n > len(cmd)-3 {
		return nil, nil, false
	}
	return cmd[3 : 3+n], cmd[3+n:], true
}

// action is what a rule does to a request or its reply.
type action int

const (
	forward action = iota
	loseReply
	swallowReply
	loseRequest
	holdRequest
	holdReply
	answer
	breakReply
)

// every is how many requests a rule applies to that is not used up.
const every = math.MaxInt

// rule applies an action to the next left requests that match.
type rule struct {
	match  Match
	left   int
	hit    bool // a request has matched
	action action
	gate   *Gate  // for the hold actions
	text   []byte // for answer
	late   []byte // for answer: one reply too many; nil: none
}

// verdict is what the rules decided about one request.
type verdict struct {
	action action
	gate   *Gate
	text   []byte
	late   []byte
}

// judge finds the oldest rule for cmd and uses it up by one.
func judge(rules []*rule, cmd []string) (verdict, []*rule) {
	rules = slices.DeleteFunc(rules, func(r *rule) bool { return r.gate != nil && r.gate.isReleased() })
	for i, r := range rules {
		if !r.match(cmd) && !slices.ContainsFunc(callsOf(cmd), r.match) {
			continue
		}
		r.hit = true
		if r.left--; r.left == 0 {
			rules = slices.Delete(rules, i, i+1)
		}
		return verdict{r.action, r.gate, r.text, r.late}, rules
	}
	return verdict{action: forward}, rules
}

// Gate holds requests or replies back until Release.
type Gate struct {
	held     chan struct{} // closed when something has arrived at the gate
	released chan struct{} // closed by Release
	hold     sync.Once
	release  sync.Once
}

func newGate() *Gate {
	return &Gate{held: make(chan struct{}), released: make(chan struct{})}
}

// Wait blocks until the gate holds something back. For a reply that means that
// the server has executed the command. It fails the test after Patience.
func (g *Gate) Wait(tb testing.TB) {
	tb.Helper()
	select {
	case <-g.held:
	case <-time.After(Patience):
		tb.Fatalf("redistest: nothing arrived at the gate within %v", Patience)
	}
}

// Release lets what is held go on, and everything behind it. A gate released
// before anything arrived holds nothing. Release may be called repeatedly.
func (g *Gate) Release() { g.release.Do(func() { close(g.released) }) }

func (g *Gate) isReleased() bool {
	select {
	case <-g.released:
		return true
	default:
		return false
	}
}

// pass holds the caller until Release. It reports false if stop came first.
func (g *Gate) pass(stop <-chan struct{}) bool {
	g.hold.Do(func() { close(g.held) })
	select {
	case <-g.released:
		return true
	case <-stop:
		return false
	}
}
