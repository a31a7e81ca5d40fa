package redistest

import (
	"fmt"
	"syscall"
)

// childAttr makes the kernel kill the child when the thread that started it
// dies: a test binary that panics or is killed must not leave servers behind.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// reservePort returns a free loopback port, or the wanted one unless it is 0, and a function that gives it up.
//
// The port stays reserved by a socket that is bound but never listens. A server
// that sets SO_REUSEADDR, as Redis does, can still listen on it, but the kernel
// hands it to no other process. Without that, a connection opened while the server
// is dead can be given the port as its source and keep the server from coming
// back: seen once in 60,000 connects without the reservation, never with it.
func reservePort(want int) (port int, release func(), err error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, fmt.Errorf("reserve port: socket: %w", err)
	}
	release = func() { _ = syscall.Close(fd) }
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		release()
		return 0, nil, fmt.Errorf("reserve port: setsockopt: %w", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Port: want, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		release()
		return 0, nil, fmt.Errorf("reserve port: bind: %w", err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		release()
		return 0, nil, fmt.Errorf("reserve port: getsockname: %w", err)
	}
	return name.(*syscall.SockaddrInet4).Port, release, nil
}

// awaitStopped blocks until the child pid is stopped or has exited. The kernel
// sends SIGSTOP asynchronously: without this wait a "stopped" server may answer
// one more command.
func awaitStopped(pid int) {
	const (
		pPid    = 1
		options = syscall.WSTOPPED | syscall.WEXITED | syscall.WNOWAIT // only look: the reaper must still find the exit
	)
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, pPid, uintptr(pid), 0, options, 0, 0)
		if errno != syscall.EINTR {
			return
		}
	}
}
