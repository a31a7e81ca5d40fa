package load

import (
	"fmt"
	"os"
	"runtime"
)

// Pinning says on which cores a run takes place.
//
// Clients and server on separate cores are the one placement in which figures repeat:
// left alone, the scheduler of a small machine moves between a round trip on one core
// (10 µs) and one across two (70 µs).
type Pinning struct {
	server int    // the server's core; -1: not pinned
	note   string // for humans
}

func (p Pinning) String() string {
	return fmt.Sprintf("%s, GOMAXPROCS %d", p.note, runtime.GOMAXPROCS(0))
}

// pinSwitch turns pinning off where it is "0"; pinnedTo tells a process that it was
// restarted by Pin, and the core that is left for the server.
const (
	pinSwitch = "HOLDFAST_BENCH_PIN"
	pinnedTo  = "HOLDFAST_BENCH_PINNED_SERVER_CORE"
)

// Pin keeps this process off the last core, which is for the server. It is called
// before anything has been started: a running Go process cannot move its threads all at once, so Pin
// restarts the program, in the same process, with the cores that are left to it. The
// runtime then sets GOMAXPROCS to their number.
func Pin() (Pinning, error) {
	if os.Getenv(pinSwitch) == "0" {
		return Pinning{-1, "not pinned (" + pinSwitch + "=0)"}, nil
	}
	return pin()
}
