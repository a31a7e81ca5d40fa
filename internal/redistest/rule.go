package redistest

import (
	"fmt"
	"math"
	"slices"
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

// verdict is what becomes of a request.
type verdict struct {
	action action
	gate   *Gate  // for the hold actions
	text   []byte // for answer
	late   []byte // for answer: one reply too many; nil: none
}

// rule says so of the next left requests that match.
type rule struct {
	verdict
	match Match
	left  int
	hit   bool // a request has matched
}

// judge finds the oldest rule for cmd and uses it up by one.
func judge(rules []*rule, cmd []string) (verdict, []*rule) {
	rules = slices.DeleteFunc(rules, func(r *rule) bool { return r.gate != nil && r.gate.isReleased() })
	for i, r := range rules {
		if !r.match(cmd) && !slices.ContainsFunc(Calls(cmd), r.match) {
			continue
		}
		r.hit = true
		if r.left--; r.left == 0 {
			rules = slices.Delete(rules, i, i+1)
		}
		return r.verdict, rules
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

// The faults of a proxy that hit chosen requests and replies.

// LoseReply lets the server execute the next n requests that match, discards
// their replies and closes their connections: the client does not know.
// Replies to earlier requests of the connection are delivered.
func (p *Proxy) LoseReply(m Match, n int) { p.addRule(m, n, loseReply, nil) }

// SwallowReply is LoseReply with the connection left open: the client waits for
// ever, as nothing more reaches it. What it sends is still executed.
func (p *Proxy) SwallowReply(m Match, n int) { p.addRule(m, n, swallowReply, nil) }

// LoseRequest keeps the next n requests that match from the server and closes
// their connections once the replies to earlier requests are delivered. To the
// client it looks like LoseReply.
func (p *Proxy) LoseRequest(m Match, n int) { p.addRule(m, n, loseRequest, nil) }

// HoldRequest keeps each request that matches from the server until the gate's Release, and later requests of
// its connection with it. A client that repeats a request over another connection, because nothing answers,
// sends the copy to the same gate: the operation cannot end before the Release, however long that takes.
func (p *Proxy) HoldRequest(m Match) *Gate { return p.addRule(m, every, holdRequest, newGate()) }

// HoldFirstRequest is HoldRequest for the next request that matches. Copies of it pass by the gate, and may
// overtake it.
func (p *Proxy) HoldFirstRequest(m Match) *Gate { return p.addRule(m, 1, holdRequest, newGate()) }

// HoldReply lets the server execute each request that matches and keeps its reply from the client until the
// gate's Release, and everything the server sends on that connection later with it. Copies of the request are
// executed too, and their replies are held at the same gate.
func (p *Proxy) HoldReply(m Match) *Gate { return p.addRule(m, every, holdReply, newGate()) }

// HoldFirstReply is HoldReply for the next request that matches. The replies to copies of it pass by the gate.
func (p *Proxy) HoldFirstReply(m Match) *Gate { return p.addRule(m, 1, holdReply, newGate()) }

// AnswerError keeps the next n requests that match from the server and answers each in its place with the
// error text, as proxies do that have no server at hand. It is an error of the newer protocol if text has more
// than one line.
func (p *Proxy) AnswerError(m Match, n int, text string) {
	raw := "-" + text + "\r\n"
	if strings.ContainsAny(text, "\r\n") {
		raw = fmt.Sprintf("!%d\r\n%s\r\n", len(text), text)
	}
	p.Answer(m, n, raw)
}

// Answer is AnswerError with any reply, as it is on the wire.
func (p *Proxy) Answer(m Match, n int, reply string) {
	p.add(&rule{match: m, left: n, verdict: verdict{action: answer, text: []byte(reply)}})
}

// BreakReply lets the server execute the next n requests that match, and closes their connections when it has
// delivered half of the reply.
func (p *Proxy) BreakReply(m Match, n int) { p.addRule(m, n, breakReply, nil) }

// AnswerTwice is Answer with one reply too many: late reaches the client after its next request on that connection,
// and before the reply to it. By then go-redis has looked for leftovers, found none and handed the connection on.
func (p *Proxy) AnswerTwice(m Match, n int, reply, late string) {
	p.add(&rule{match: m, left: n, verdict: verdict{action: answer, text: []byte(reply), late: []byte(late)}})
}

func (p *Proxy) addRule(m Match, n int, a action, g *Gate) *Gate {
	p.add(&rule{match: m, left: n, verdict: verdict{action: a, gate: g}})
	return g
}

func (p *Proxy) add(r *rule) {
	p.tb.Helper()
	if r.left < 1 {
		p.tb.Fatalf("redistest: proxy: rule for %d requests", r.left)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, r)
}

// admit decides what happens to a request that is about to be forwarded.
func (p *Proxy) admit(cmd []string) (v verdict) {
	ScriptName(cmd) // it learns the name from the text, which comes once
	p.mu.Lock()
	defer p.mu.Unlock()
	v, p.rules = judge(p.rules, cmd)
	return v
}
