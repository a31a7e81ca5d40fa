package vredis

import (
	"io"
	"net"
	"time"
)

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
