package main

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// The processes of bench and of the demo do not have the password among their arguments, which all users of a host can see.
func TestCrew_HidesThePassword(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"bench --for=10m", "demo --hold=5h"} {
		srv := redistest.Start(t)
		i := prepare(t, urlOf(srv), strings.Fields(args)...)
		if strings.HasPrefix(args, "demo") {
			i.Args = append(i.Args, "--redis="+urlOf(srv))
		}
		must(t, i.Start())
		redistest.Eventually(t, patience, "the processes are there", func() bool {
			found := 0
			for _, line := range i.children(t) {
				if !strings.Contains(line, buyersName) && !strings.Contains(line, benchWorkerName) {
					continue // a fork has the arguments of its parent until it is the other program
				}
				if found++; strings.Contains(line, srv.Password()) {
					t.Fatalf("the password is among the arguments: %q", line)
				}
			}
			return found > 1
		})
	}
}
