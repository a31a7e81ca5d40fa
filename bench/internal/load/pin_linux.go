package load

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

func pin() (Pinning, error) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return Pinning{}, fmt.Errorf("read the affinity: %w", err)
	}
	if s := os.Getenv(pinnedTo); s != "" {
		core, err := strconv.Atoi(s)
		if err != nil {
			return Pinning{}, fmt.Errorf("%s: %w", pinnedTo, err)
		}
		return Pinning{core, fmt.Sprintf("pinned: clients on core %s, redis-server on core %d", list(&all), core)}, nil
	}
	if all.Count() < 2 {
		return Pinning{-1, "not pinned (one core)"}, nil
	}
	last := 0
	for core := range len(all) * 64 {
		if all.IsSet(core) {
			last = core
		}
	}
	all.Clear(last)

	runtime.LockOSThread() // exec keeps the affinity of the thread that calls it
	if err := unix.SchedSetaffinity(0, &all); err != nil {
		return Pinning{}, fmt.Errorf("set the affinity: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return Pinning{}, err
	}
	env := append(os.Environ(), fmt.Sprintf("%s=%d", pinnedTo, last))
	return Pinning{}, fmt.Errorf("restart pinned: %w", syscall.Exec(self, os.Args, env))
}

func list(set *unix.CPUSet) string {
	s := ""
	for core := range len(set) * 64 {
		if set.IsSet(core) {
			if s != "" {
				s += ","
			}
			s += strconv.Itoa(core)
		}
	}
	return s
}

// dieWithParent has the kernel end cmd's process if this one is killed.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
