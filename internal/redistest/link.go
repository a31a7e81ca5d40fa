package redistest

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// stuck bounds one write. A peer that has not read for so long, with all
// buffers full, would block Freeze and BlackHole; its link is given up.
const stuck = 10 * time.Second

// duplex is a connection whose directions are closed one by one.
type duplex interface {
	net.Conn
	CloseWrite() error
}

// queued is one frame on its way through a link, or the end of the stream.
type queued struct {
	frame
	due    time.Time
	spared bool // from delays, freezes and black holes; see greeter
	end    bool
}

// link is one client connection and its server connection. Each direction has
// a goroutine that reads frames and one that moves them on, so that a frame
// being delayed or held does not keep the proxy from reading. run owns them.
type link struct {
	proxy  *Proxy
	client duplex
	server duplex // set by run before the others start

	requests chan queued
	replies  chan queued
	stop     chan struct{} // closed by abort
	stopOnce sync.Once

	// lost: bytes fell into a black hole. Nothing may pass any more, as what
	// follows would be taken for what is missing.
	lost atomic.Bool
	// severed: both sides were told that the connection is over; what is
	// still on its way is discarded.
	severed atomic.Bool
	// mute: nothing more may reach the client.
	mute atomic.Bool
	// deaf: a request was lost, and nothing behind it may reach the server.
	deaf bool // owned by the goroutine that forwards requests

	greeter greeter
	awaited awaited
	// answers is held while a reply, and the proxy's own that follow it, go to the client.
	answers sync.Mutex
	// late is the reply too many of AnswerTwice, until the next request; nil: none.
	late []byte // guarded by answers
}

func newLink(p *Proxy, client duplex) *link {
	return &link{
		proxy:    p,
		client:   client,
		requests: make(chan queued, 256),
		replies:  make(chan queued, 256),
		stop:     make(chan struct{}),
	}
}

// abort ends the link at once, in the middle of whatever happens.
func (l *link) abort() {
	l.stopOnce.Do(func() { close(l.stop) })
	_ = l.client.Close()
}

// run serves the link until both connections have ended or it is aborted.
func (l *link) run() {
	defer l.proxy.forget(l)
	defer l.client.Close()
	virtual := l.proxy.server.virtual != nil
	if !virtual { // a frozen network makes no connection
		if !l.proxy.enter(l.stop) {
			return
		}
		l.proxy.flow.RUnlock()
	}
	l.greeter.over.Store(!virtual)
	conn, err := l.proxy.server.dial(context.Background())
	if err != nil {
		return
	}
	defer conn.Close()
	l.server = conn

	var wg sync.WaitGroup
	wg.Go(func() { l.read("request", newFrameReader(l.client, -1).request, l.greeter.asks, l.requests) })
	wg.Go(func() { l.read("reply", newFrameReader(l.server, 2).reply, l.greeter.answers, l.replies) })
	wg.Go(func() { l.move(l.requests, l.forwardRequest, l.clientGone) })
	wg.Go(func() { l.move(l.replies, l.forwardReply, l.serverGone) })
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()
	select {
	case <-l.stop:
		_ = l.client.Close()
		_ = l.server.Close()
		<-ended
	case <-ended:
	}
}

// read queues frames until the stream ends.
func (l *link) read(what string, next func() (frame, error), greets func(frame) bool, queue chan<- queued) {
	for {
		f, err := next()
		q := queued{frame: f, end: err != nil}
		if q.spared = err == nil && greets(f); !q.spared {
			q.due = l.proxy.due()
		}
		if errors.Is(err, errProtocol) {
			l.proxy.fail("read "+what, err)
		}
		select {
		case queue <- q:
		case <-l.stop:
			return
		}
		if q.end {
			return
		}
	}
}

// move takes frames from the queue when they are due, until the end. A frame
// that is due later than the next one holds it up: jitter does not reorder.
func (l *link) move(queue <-chan queued, each func(queued), end func()) {
	for {
		var q queued
		select {
		case q = <-queue:
		case <-l.stop:
			return
		}
		if d := time.Until(q.due); d > 0 {
			select {
			case <-time.After(d):
			case <-l.stop:
				return
			}
		}
		if q.end {
			end()
			return
		}
		each(q)
	}
}

// enter waits until the frame in hand may move on, and returns with the
// proxy's flow read-locked. It reports false, without the lock, if the frame
// is to be discarded: the network eats it or the link is over.
func (l *link) enter(spared bool) bool {
	if spared {
		l.proxy.flow.RLock()
		return true
	}
	if !l.proxy.enter(l.stop) {
		return false
	}
	if l.proxy.holed {
		l.lost.Store(true)
	}
	if l.lost.Load() || l.severed.Load() {
		l.proxy.flow.RUnlock()
		return false
	}
	return true
}

func (l *link) forwardRequest(f queued) {
	if l.deaf || !l.enter(f.spared) {
		return
	}
	req := &request{verdict: l.proxy.admit(f.elems)}
	if req.action == holdRequest {
		l.proxy.flow.RUnlock()
		if !req.gate.pass(l.stop) || !l.enter(false) {
			return
		}
	}
	defer l.proxy.flow.RUnlock()
	l.giveLate()
	switch req.action {
	case loseRequest:
		l.deaf = true
		l.awaited.addUnsent(req)
		l.severIfLost()
		return
	case answer:
		l.proxy.record(f.elems)
		l.answers.Lock()
		defer l.answers.Unlock()
		l.awaited.addUnsent(req)
		l.giveAnswers()
		return
	}
	l.proxy.record(f.elems)
	l.awaited.add(f.elems, req)
	// If the write fails the server is gone, and its end of stream follows.
	_ = l.write(l.server, f.raw)
}

func (l *link) forwardReply(f queued) {
	if !l.enter(f.spared) {
		return
	}
	req := l.awaited.match(f.frame)
	if req != nil && req.action == holdReply && !l.mute.Load() {
		l.proxy.flow.RUnlock()
		if !req.gate.pass(l.stop) || !l.enter(false) {
			return
		}
	}
	defer l.proxy.flow.RUnlock()
	l.answers.Lock()
	defer l.answers.Unlock()
	switch {
	case l.mute.Load(), l.proxy.hushes(f.frame):
	case req != nil && req.action == swallowReply:
		l.mute.Store(true)
	case req != nil && req.action == loseReply:
		l.sever()
	case req != nil && req.action == breakReply:
		l.reply(f.raw[:len(f.raw)/2])
		l.sever()
	default:
		l.reply(f.raw)
	}
	l.awaited.settle(req)
	l.giveAnswers()
	l.severIfLost()
}

// giveAnswers gives the proxy's own answers that are next in line.
func (l *link) giveAnswers() {
	for r := l.awaited.nextAnswer(); r != nil; r = l.awaited.nextAnswer() {
		if !l.mute.Load() && !l.severed.Load() {
			l.reply(r.text)
			l.late = r.late
		}
	}
}

// giveLate gives the reply too many.
func (l *link) giveLate() {
	l.answers.Lock()
	defer l.answers.Unlock()
	if l.late != nil && !l.mute.Load() && !l.severed.Load() {
		l.reply(l.late)
	}
	l.late = nil
}

// reply sends the client some bytes.
func (l *link) reply(raw []byte) {
	if err := l.write(l.client, raw); err != nil {
		l.mute.Store(true) // the client is gone; drain the server
	}
}

// write sends a frame. It gives the link up if the peer is stuck: half a frame
// may have gone, and nothing can follow it.
func (l *link) write(to duplex, raw []byte) error {
	_ = to.SetWriteDeadline(time.Now().Add(stuck))
	_, err := to.Write(raw)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		l.abort()
	}
	return err
}

// severIfLost closes the connection when a lost request is next in line.
func (l *link) severIfLost() {
	if l.awaited.lostIsNext() {
		l.sever()
	}
}

// sever tells both sides that the connection is over. It does so with a FIN
// rather than a close, whose RST could overtake replies already sent.
func (l *link) sever() {
	if l.severed.CompareAndSwap(false, true) {
		_ = l.client.CloseWrite()
		_ = l.server.CloseWrite()
	}
}

// clientGone passes the client's closing on, behind all it has sent.
func (l *link) clientGone() {
	for l.proxy.enter(l.stop) {
		healed := l.proxy.healed
		l.proxy.flow.RUnlock()
		if healed == nil {
			_ = l.server.CloseWrite()
			return
		}
		select { // the hole swallows the closing; a healed network resets
		case <-healed:
		case <-l.stop:
			return
		}
	}
}

// serverGone passes the server's closing on, unless the client must not know.
func (l *link) serverGone() {
	if !l.enter(false) {
		return
	}
	defer l.proxy.flow.RUnlock()
	if !l.mute.Load() {
		_ = l.client.Close()
	}
}
