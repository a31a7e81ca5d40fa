package redistest

import (
	"os"
	"syscall"
)

// Windows has no such signals: sending them is an error.
var stopSignal, continueSignal os.Signal = syscall.Signal(19), syscall.Signal(18)
