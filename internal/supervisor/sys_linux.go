package supervisor

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// newGroup gives the command a process group of its own. If its parent is killed, Linux sends it TERM; what the command
// has started is not told then.
func newGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// adoptOrphans makes this process the parent of all that its descendants leave behind: they stay below it.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// descendants returns the processes below root. What is moved while it looks may be missing: the next look finds it.
func descendants(root int, except []int) (pids []int) {
	seen := map[int]bool{root: true}
	for _, pid := range except {
		seen[pid] = true
	}
	for next := []int{root}; len(next) > 0; next = next[1:] {
		for _, pid := range childrenOf(next[0]) {
			if !seen[pid] {
				seen[pid] = true
				pids, next = append(pids, pid), append(next, pid)
			}
		}
	}
	return pids
}

// childrenOf returns none for a process that has ended.
func childrenOf(pid int) (children []int) {
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, task := range tasks {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		for _, word := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

// listsChildren reports whether this kernel says which children a process has.
func listsChildren() bool {
	_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid()))
	return err == nil
}

// ignored reports whether this process was started with s ignored, of the signals that the Go runtime leaves alone.
func ignored(s syscall.Signal) bool {
	status, _ := os.ReadFile("/proc/self/status")
	_, mask, _ := strings.Cut(string(status), "\nSigIgn:\t")
	mask, _, _ = strings.Cut(mask, "\n")
	set, _ := strconv.ParseUint(mask, 16, 64)
	return set>>(s-1)&1 != 0
}

// adopts says whether a process gets the children of its descendants that end.
const adopts = true
