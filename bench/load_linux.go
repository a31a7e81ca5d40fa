package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// userHZ is the unit of CPU times in /proc, fixed by the kernel's interface.
const userHZ = 100

// elsewhere returns the CPU time that neither this process nor the server has used
// since the machine started, in programs or to the hypervisor. Interrupts count for
// nobody: on loopback they are the two's own traffic.
func (s *Server) elsewhere() (time.Duration, error) {
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
	for _, pid := range []string{"self", strconv.Itoa(s.cmd.Process.Pid)} {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			return 0, err
		}
		// pid (name) state ... utime stime; fields 14 and 15, and the name may have spaces
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		own, err := sum(fields[11], fields[12])
		if err != nil {
			return 0, err
		}
		ticks -= own
	}
	return time.Duration(ticks) * time.Second / userHZ, nil
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
