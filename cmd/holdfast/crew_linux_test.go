package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// The processes of bench and of the demo do not have the password among their arguments, which all users of a host can see.
func TestCrew_HidesThePassword(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"bench --for=10m", "demo --hold=5h"} {
		srv := redistest.Start(t)
		i := newInvocation(t, strings.Fields(args)...)
		i.Env = append(i.Env, "HOLDFAST_REDIS="+urlOf(srv))
		if strings.HasPrefix(args, "demo") {
			i.Args = append(i.Args, "--redis="+urlOf(srv))
		}
		must(t, i.Start())
		t.Cleanup(func() { _ = i.Process.Kill() })
		redistest.Eventually(t, patience, "the processes are there", func() bool {
			found := 0
			threads, _ := filepath.Glob("/proc/" + strconv.Itoa(i.Process.Pid) + "/task/*/children")
			for _, thread := range threads {
				text, _ := os.ReadFile(thread)
				for _, pid := range strings.Fields(string(text)) {
					line, _ := os.ReadFile("/proc/" + pid + "/cmdline")
					if !strings.Contains(string(line), buyersName) && !strings.Contains(string(line), benchWorkerName) {
						continue // a fork has the arguments of its parent until it is the other program
					}
					if found++; strings.Contains(string(line), srv.Password()) {
						t.Fatalf("the password is among the arguments: %q", line)
					}
				}
			}
			return found > 1
		})
	}
}
