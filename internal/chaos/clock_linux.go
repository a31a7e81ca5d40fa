package chaos

import (
	"fmt"
	"syscall"
	"unsafe"
)

// sharedClock reads CLOCK_MONOTONIC: one clock for the whole system, and the one that
// Go's own monotonic readings come from.
func sharedClock() int64 {
	const clockMonotonic = 1
	var ts syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		panic(fmt.Sprintf("clock_gettime: %v", errno))
	}
	return ts.Nano()
}
