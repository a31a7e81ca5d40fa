package holdfasttest

import (
	"net"
	"time"
)

// refused is a connection that could not be made: each use of it returns err.
type refused struct{ err error }

func (r refused) Read([]byte) (int, error)       { return 0, r.err }
func (r refused) Write([]byte) (int, error)      { return 0, r.err }
func (refused) Close() error                     { return nil }
func (refused) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (refused) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (refused) SetDeadline(time.Time) error      { return nil }
func (refused) SetReadDeadline(time.Time) error  { return nil }
func (refused) SetWriteDeadline(time.Time) error { return nil }
