package redistest

import (
	"fmt"
	"slices"
	"strings"
)

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
	p.add(&rule{match: m, left: n, action: answer, text: []byte(reply)})
}

// BreakReply lets the server execute the next n requests that match, and closes their connections when it has
// delivered half of the reply.
func (p *Proxy) BreakReply(m Match, n int) { p.addRule(m, n, breakReply, nil) }

// AnswerTwice is Answer with one reply too many: late reaches the client after its next request on that connection,
// and before the reply to it. By then go-redis has looked for leftovers, found none and handed the connection on.
func (p *Proxy) AnswerTwice(m Match, n int, reply, late string) {
	p.add(&rule{match: m, left: n, action: answer, text: []byte(reply), late: []byte(late)})
}

func (p *Proxy) addRule(m Match, n int, a action, g *Gate) *Gate {
	p.add(&rule{match: m, left: n, action: a, gate: g})
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
	p.mu.Lock()
	defer p.mu.Unlock()
	v, p.rules = judge(p.rules, cmd)
	return v
}

// Rewriter returns what the server is to get instead of cmd, or cmd itself. It must
// not change cmd, and is called by one goroutine for each connection.
type Rewriter func(cmd []string) []string

// Rewrite lets the server execute what f makes of each request, so that a test can
// plant a bug behind the back of a client. Rules, Commands and Count see the original.
func (p *Proxy) Rewrite(f Rewriter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rewrite = f
}

// rewritten returns f as the server is to get it.
func (p *Proxy) rewritten(f frame) frame {
	p.mu.Lock()
	rewrite := p.rewrite
	p.mu.Unlock()
	if rewrite == nil {
		return f
	}
	cmd := rewrite(f.elems)
	if slices.Equal(cmd, f.elems) {
		return f
	}
	return frame{raw: encodeCommand(cmd...), kind: '*', elems: cmd}
}
