package vredis

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// pipe is one direction of a connection: bytes that have been written and not been read. A write never
// waits. A read waits on a channel, which is what stops a synctest bubble's clock from standing still.
type pipe struct {
	mu       sync.Mutex
	data     []byte        // guarded by mu
	closed   error         // guarded by mu; what a read returns once data is empty; nil: open
	changed  chan struct{} // guarded by mu; closed when something changes; nil: no reader waits
	deadline time.Time     // guarded by mu
}

func (p *pipe) rouseLocked() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// write reports whether the pipe is open.
func (p *pipe) write(b []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed == nil {
		p.data = append(p.data, b...)
		p.rouseLocked()
	}
	return p.closed == nil
}

// close ends the pipe; with discard what has not been read is lost.
func (p *pipe) close(err error, discard bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed == nil {
		p.closed = err
	}
	if discard {
		p.data = nil
	}
	p.rouseLocked()
}

// ended returns why the pipe is closed; nil: it is open, or has bytes to read.
func (p *pipe) ended() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.data) > 0 {
		return nil
	}
	return p.closed
}

// ready returns a channel that is closed when there is something to take.
func (p *pipe) ready() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	changed := p.changed
	if len(p.data) > 0 || p.closed != nil {
		p.rouseLocked()
	}
	return changed
}

// take returns all that has not been read, without waiting, and why the pipe is closed.
func (p *pipe) take() ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	data := p.data
	p.data = nil
	return data, p.closed
}

func (p *pipe) setDeadline(t time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deadline = t
	p.rouseLocked()
}

func (p *pipe) read(b []byte) (int, error) {
	for {
		p.mu.Lock()
		switch {
		case len(p.data) > 0:
			n := copy(b, p.data)
			if p.data = p.data[n:]; len(p.data) == 0 {
				p.data = nil
			}
			p.mu.Unlock()
			return n, nil
		case p.closed != nil:
			defer p.mu.Unlock()
			return 0, p.closed
		case len(b) == 0:
			p.mu.Unlock()
			return 0, nil
		}
		if p.changed == nil {
			p.changed = make(chan struct{})
		}
		changed, deadline := p.changed, p.deadline
		p.mu.Unlock()
		if deadline.IsZero() {
			<-changed
			continue
		}
		left := time.Until(deadline)
		if left <= 0 {
			return 0, os.ErrDeadlineExceeded
		}
		timer := time.NewTimer(left)
		select {
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

var errEnded = io.EOF // the server has closed the connection

// End is one end of a connection that leads to no server: what stands between a client and a server, such as a proxy,
// has the other end. As on a connection of Dial, a write never waits.
type End struct{ in, out *pipe }

// Pair returns the two ends of a new connection.
func Pair() (a, b *End) {
	there, back := new(pipe), new(pipe)
	return &End{in: back, out: there}, &End{in: there, out: back}
}

// Read returns what the other end has written. It returns io.EOF behind all of it when that end is closed.
func (e *End) Read(b []byte) (int, error) {
	n, err := e.in.read(b)
	if err != nil && err != io.EOF {
		err = &net.OpError{Op: "read", Net: "vredis", Err: err}
	}
	return n, err
}

// Write fails if either end is closed.
func (e *End) Write(b []byte) (int, error) {
	if !e.out.write(b) {
		return 0, pipeError("write")
	}
	return len(b), nil
}

// CloseWrite ends what this end says. The other end still reads all that has been written.
func (e *End) CloseWrite() error {
	e.out.close(io.EOF, false)
	return nil
}

// Close is CloseWrite; besides, what the other end has written and will write is lost.
func (e *End) Close() error {
	e.in.close(net.ErrClosed, true)
	return e.CloseWrite()
}

func (e *End) LocalAddr() net.Addr  { return address("client") }
func (e *End) RemoteAddr() net.Addr { return address("127.0.0.1:6379") }

func (e *End) SetDeadline(t time.Time) error     { return e.SetReadDeadline(t) }
func (e *End) SetWriteDeadline(time.Time) error  { return nil } // a write never waits
func (e *End) SetReadDeadline(t time.Time) error { e.in.setDeadline(t); return nil }
