//go:build !linux

package redistest

import (
	"fmt"
	"net"
	"syscall"
)

// childAttr: other systems have no parent-death signal; only the cleanup kills.
func childAttr() *syscall.SysProcAttr { return nil }

// reservePort asks for a free port and gives it up at once: elsewhere a bound
// socket would keep the server out. Start tries again if another process is faster.
func reservePort(want int) (port int, release func(), err error) {
	l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", want))
	if err != nil {
		return 0, nil, fmt.Errorf("reserve port: %w", err)
	}
	port = l.Addr().(*net.TCPAddr).Port
	return port, func() {}, l.Close()
}

// awaitStopped: no portable event tells that a child is stopped.
func awaitStopped(pid int) {}
