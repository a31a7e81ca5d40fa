package vredis

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// conn is a client's connection: the client's end of it as a net.Conn, and what the server knows of the client. The
// server has no goroutine for it: a Write executes the commands that it completes, so that a command
// takes no virtual time and nothing waits while a mutex is held.
type conn struct {
	srv *Server
	id  int64
	out pipe // to the client

	// All below are guarded by srv.mu.
	in       []byte // not executed yet: half a command, or the server stands still
	finished bool   // the client has closed it, and nothing follows in
	dead     bool
	name     string
	proto    int
	user     *user // nil: has not authenticated
	shards   map[string]bool
	subs     map[string]bool
	order    int64 // of arrival of in, while frozen

	multi   [][]string // queued; nil: no MULTI
	inMulti bool
	spoiled bool        // an error while queuing
	waiting *time.Timer // WAIT; nil: none
}

// Conn is what Dial returns, with a way to read all that the server has sent so far.
type Conn interface {
	net.Conn
	// Ready returns a channel that is closed once there is something to take.
	Ready() <-chan struct{}
	// Take returns what the server has sent and the client has not read, and why nothing follows; nil: more may.
	Take() ([]byte, error)
}

func (c *conn) Ready() <-chan struct{} { return c.out.ready() }
func (c *conn) Take() ([]byte, error)  { return c.out.take() }

type address string

func (address) Network() string  { return "vredis" }
func (a address) String() string { return string(a) }

// pipeError is what a connection that has ended returns for a write.
func pipeError(op string) error {
	return &net.OpError{Op: op, Net: "vredis", Err: syscall.EPIPE}
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.out.read(b)
	if err != nil && !errors.Is(err, errEnded) && n == 0 {
		err = &net.OpError{Op: "read", Net: "vredis", Err: err}
	}
	return n, err
}

// Write hands bytes to the server and executes the commands that are complete.
func (c *conn) Write(b []byte) (int, error) {
	s := c.srv
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.dead || c.finished {
		return 0, pipeError("write")
	}
	if len(c.in) == 0 {
		s.arrivals++
		c.order = s.arrivals
	}
	c.in = append(c.in, b...)
	c.serveLocked()
	return len(b), nil
}

// serveLocked executes what has come, as far as the server may.
func (c *conn) serveLocked() {
	rest := c.in
	for !c.dead && c.waiting == nil {
		args, after, wrong := ParseCommand(rest)
		if wrong != "" {
			c.sendLocked(replyError("ERR " + wrong))
			c.endLocked(false)
			return
		}
		held := len(args) > 0 && c.srv.holdsLocked(args)
		if args == nil && c.finished {
			c.endLocked(false)
			return
		}
		if args == nil || held {
			break
		}
		rest = after
		if len(args) > 0 {
			c.sendLocked(c.srv.serve(c, args))
		}
	}
	switch len(rest) {
	case 0:
		c.in = nil
	case len(c.in): // nothing was executed
	default:
		c.in = append([]byte(nil), rest...)
	}
}

func (c *conn) sendLocked(reply any) {
	if _, none := reply.(silent); !none {
		c.out.write(appendReply(nil, c.proto, reply))
	}
}

// endLocked ends the connection. With discard what the client has not read is lost.
func (c *conn) endLocked(discard bool) {
	if c.dead {
		return
	}
	c.dead, c.in = true, nil
	if c.waiting != nil {
		c.waiting.Stop()
		c.waiting = nil
	}
	delete(c.srv.conns, c.id)
	c.srv.forgetSubscriber(c)
	c.out.close(errEnded, discard)
}

// CloseWrite ends what the client says. What it has said before is executed, once the server gets on, and the answers
// can be read.
func (c *conn) CloseWrite() error {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	c.finished = true
	if c.waiting != nil {
		c.endLocked(false) // Redis lets no client wait that is gone
	}
	c.serveLocked()
	return nil
}

// Close is CloseWrite; besides, the client reads no more.
func (c *conn) Close() error {
	_ = c.CloseWrite()
	c.out.close(net.ErrClosed, true)
	return nil
}

// SyscallConn is for go-redis's pools, which look whether a connection has been closed before they use it again.
func (c *conn) SyscallConn() (syscall.RawConn, error) { return rawConn{c}, nil }

// rawConn has no descriptor, so it calls no function.
type rawConn struct{ c *conn }

// Read returns the error of a connection that has ended.
func (r rawConn) Read(func(fd uintptr) bool) error { return r.c.out.ended() }

func (r rawConn) Write(func(fd uintptr) bool) error { return errors.ErrUnsupported }
func (r rawConn) Control(func(fd uintptr)) error    { return errors.ErrUnsupported }

func (c *conn) LocalAddr() net.Addr  { return address("client") }
func (c *conn) RemoteAddr() net.Addr { return address(c.srv.addr) }

func (c *conn) SetDeadline(t time.Time) error     { return c.SetReadDeadline(t) }
func (c *conn) SetWriteDeadline(time.Time) error  { return nil } // a write never waits
func (c *conn) SetReadDeadline(t time.Time) error { c.out.setDeadline(t); return nil }
