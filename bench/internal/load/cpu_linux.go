package load

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// userHZ is the unit of CPU times in /proc, fixed by the kernel's interface.
const userHZ = 100

// Elsewhere returns the CPU time that neither this process nor the server nor workers
// have used since the machine started, in programs or to the hypervisor. Interrupts
// count for no process: on loopback they are the benchmark's traffic. It is not called while
// workers have a job.
func (s *Server) Elsewhere() (time.Duration, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	// cpu user nice system idle iowait irq softirq steal ...
	total := strings.Fields(string(stat))
	if len(total) < 9 {
		return 0, fmt.Errorf("/proc/stat: %d fields", len(total))
	}
	ticks, err := sum(total[1], total[2], total[3], total[8])
	if err != nil {
		return 0, err
	}
	own, err := usedBy("self", strconv.Itoa(s.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	idle, err := s.usedByIdle()
	return time.Duration(ticks)*time.Second/userHZ - own - idle, err
}

// usedByIdle is the CPU time of the virtual machines without a job.
func (s *Server) usedByIdle() (time.Duration, error) {
	var pids []string
	for _, w := range s.javas {
		pids = append(pids, strconv.Itoa(w.cmd.Process.Pid))
	}
	return usedBy(pids...)
}

// usedBy is the CPU time of processes, and of their children that have ended.
func usedBy(pids ...string) (time.Duration, error) {
	var ticks int64
	for _, pid := range pids {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			return 0, err
		}
		// pid (name) state ... utime stime cutime cstime: fields 14 to 17, the last two of
		// children; and the name may have spaces
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		own, err := sum(fields[11:15]...)
		if err != nil {
			return 0, err
		}
		ticks += own
	}
	return time.Duration(ticks) * time.Second / userHZ, nil
}

// CPUTime is what this process has used.
func CPUTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0 // the call is always there
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func sum(fields ...string) (int64, error) {
	var n int64
	for _, f := range fields {
		k, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		n += k
	}
	return n, nil
}
