package redistest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/vredis"
)

// Proxy is a TCP proxy in front of a Server that reads the protocol, so that
// faults hit whole requests and replies, and exactly the chosen ones.
//
// A rule (LoseReply and so on) applies to requests forwarded after it was set,
// each request to the oldest rule that matches and is not used up. Mind that a
// client sends more than its user: a handshake at the start of a connection,
// EVALSHA again as EVAL after NOSCRIPT, and go-redis re-sends on lost replies.
//
// Replies are told apart as Redis orders them: one reply for each request,
// first in, first out; push frames, and in RESP2 the messages to a subscriber,
// belong to none. The reply to a SUBSCRIBE or UNSUBSCRIBE is its first
// confirmation; an UNSUBSCRIBE without channels has no reply that a rule can
// hit. CLIENT REPLY is not supported.
//
// TCP's order is kept: what a client has sent before it closed its connection
// still reaches the server, also if it was held back meanwhile. That is how a
// copy of a request arrives after its sender has given up.
type Proxy struct {
	tb       testing.TB
	server   *Server
	listener net.Listener   // nil: in front of a virtual server, where dial takes its place
	wg       sync.WaitGroup // the accepting goroutine and every link

	// flow is read-locked while a frame moves on, so that nothing is under way
	// any more when Freeze or BlackHole returns. No lock is taken inside but mu.
	flow   sync.RWMutex
	holed  bool          // guarded by flow
	healed chan struct{} // guarded by flow; non-nil while holed, closed at its end
	thaw   chan struct{} // guarded by flow; non-nil while frozen, closed at its end

	mu       sync.Mutex
	rules    []*rule            // guarded by mu; oldest first
	links    map[*link]struct{} // guarded by mu
	log      [][]string         // guarded by mu
	overflow bool               // guarded by mu; log is full, requests are missing
	delay    time.Duration      // guarded by mu
	jitter   time.Duration      // guarded by mu
	refuse   bool               // guarded by mu
	hushed   bool               // guarded by mu
	closed   bool               // guarded by mu; no new links
}

// Proxy starts a proxy in front of s, without any fault. Its connections end
// at tb's cleanup. The server may be restarted behind it; while it is dead,
// clients that connect to the proxy are disconnected at once.
func (s *Server) Proxy(tb testing.TB) *Proxy {
	tb.Helper()
	p := &Proxy{tb: tb, server: s, links: make(map[*link]struct{})}
	if s.virtual == nil {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			tb.Fatalf("redistest: proxy: %v", err)
		}
		p.listener = l
		p.wg.Go(p.accept)
	}
	tb.Cleanup(p.close)
	return p
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return // closed by close
		}
		p.serve(conn.(*net.TCPConn))
	}
}

// dial is what a client of a virtual server does instead of connecting to the listener.
func (p *Proxy) dial(context.Context, string, string) (net.Conn, error) {
	client, here := vredis.Pair()
	p.serve(here)
	return client, nil
}

// serve begins a link for a client that has connected.
func (p *Proxy) serve(client duplex) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.refuse {
		_ = client.Close()
		return
	}
	l := newLink(p, client)
	p.links[l] = struct{}{}
	p.wg.Go(l.run)
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	for l := range p.links {
		l.abort()
	}
	p.mu.Unlock()
	if p.listener != nil {
		_ = p.listener.Close()
	}
	p.wg.Wait()
}

// forget is called by a link that has ended.
func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// Addr returns the host:port clients connect to. In front of a virtual server it is that server's: see Options.
func (p *Proxy) Addr() string {
	if p.listener == nil {
		return p.server.addr
	}
	return p.listener.Addr().String()
}

// Options returns fresh client options that lead through the proxy and are
// go-redis's defaults otherwise.
func (p *Proxy) Options() *redis.Options {
	opt := p.server.Options()
	opt.Addr = p.Addr()
	if p.listener == nil {
		opt.Dialer = p.dial
	}
	return opt
}

// Client returns a new client through the proxy, closed at tb's cleanup.
func (p *Proxy) Client(tb testing.TB) *redis.Client {
	return p.ClientWith(tb, nil)
}

// ClientWith is Client with options changed by change, which may be nil.
func (p *Proxy) ClientWith(tb testing.TB, change func(*redis.Options)) *redis.Client {
	return newClient(tb, p.Options(), change)
}

// Delay makes every frame that arrives from now on, in either direction, wait
// for d and a random part of jitter. Frames of a connection stay in order, and
// a long pipeline is delayed as a whole, not once per frame.
func (p *Proxy) Delay(d, jitter time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay, p.jitter = d, jitter
}

// due returns when a frame that has just arrived may move on.
func (p *Proxy) due() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.delay
	if p.jitter > 0 {
		d += rand.N(p.jitter)
	}
	if d == 0 {
		return time.Time{}
	}
	return time.Now().Add(d)
}

// BlackHole discards, while on, everything either side sends. No connection is
// closed, new ones are accepted, and a closing by one side is not passed on.
//
// When it is switched off, connections that lost bytes stay dead: they hang
// until the client closes them or Cut does. The others and new ones work.
func (p *Proxy) BlackHole(on bool) {
	p.flow.Lock()
	defer p.flow.Unlock()
	if on == p.holed {
		return
	}
	p.holed = on
	if on {
		p.healed = make(chan struct{})
	} else {
		close(p.healed)
		p.healed = nil
	}
}

// Forget makes the connections that exist dead, as a NAT does that has forgotten them: they stay open, and
// what either side sends vanishes. New connections work.
func (p *Proxy) Forget() {
	p.flow.Lock()
	defer p.flow.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.lost.Store(true)
	}
}

// Freeze stops all traffic while on, and loses none of it: when it is switched
// off everything continues in order. When Freeze(true) returns, nothing moves.
func (p *Proxy) Freeze(on bool) {
	p.flow.Lock()
	defer p.flow.Unlock()
	if on == (p.thaw != nil) {
		return
	}
	if on {
		p.thaw = make(chan struct{})
	} else {
		close(p.thaw)
		p.thaw = nil
	}
}

// enter waits until traffic may move and returns with flow read-locked. It
// reports false, without the lock, if stop came first.
func (p *Proxy) enter(stop <-chan struct{}) bool {
	for {
		p.flow.RLock()
		thaw := p.thaw
		if thaw == nil {
			return true
		}
		p.flow.RUnlock()
		select {
		case <-thaw:
		case <-stop:
			return false
		}
	}
}

// Hush keeps, while on, the messages that clients are subscribed to from them. All else passes: SUBSCRIBE is confirmed, and PING
// answered.
func (p *Proxy) Hush(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hushed = on
}

func (p *Proxy) hushes(f frame) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hushed && slices.Contains(messages, f.text())
}

// Cut closes all client connections. Requests that the proxy has read by then
// still reach the server.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		_ = l.client.Close()
	}
}

// Refuse closes, while on, every new connection at once.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = on
}

// Heal ends every fault: rules are dropped and gates not reached yet released,
// and Delay, BlackHole, Freeze and Refuse are switched off. Dead connections
// stay dead, and what a gate holds already stays held until its Release.
func (p *Proxy) Heal() {
	p.mu.Lock()
	for _, r := range p.rules {
		if r.gate != nil && !r.hit {
			r.gate.Release()
		}
	}
	p.rules, p.delay, p.jitter, p.refuse, p.hushed = nil, 0, 0, false, false
	p.mu.Unlock()
	p.BlackHole(false)
	p.Freeze(false)
}

// fail reports a protocol error, which is a bug in a client or in this package.
func (p *Proxy) fail(what string, err error) {
	p.tb.Errorf("redistest: %s", fmt.Errorf("proxy: %s: %w", what, err))
}
