//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Two hosts start the same job again and again, at the same time and each several times over: no two run together, each
// runs, and their fencing tokens grow.
func TestRun_TwoHostsUnderLoad(t *testing.T) {
	t.Parallel()
	const each, times = 3, 5 // lanes of a host, and runs of a lane
	srv, dir := redistest.Start(t), t.TempDir()
	log := filepath.Join(dir, "log")
	const job = `mkdir "$1/inside" || exit 9; echo "$HOLDFAST_TOKEN" >>"$1/log"; rmdir "$1/inside"`
	var lanes sync.WaitGroup
	for range 2 * each {
		lanes.Go(func() {
			for range times {
				i := newInvocation(t, "run", "job", "--fencing", "--", "sh", "-c", job, "sh", dir)
				i.Env = append(i.Env, "HOLDFAST_REDIS="+urlOf(srv))
				if err := i.Start(); err != nil {
					t.Error(err)
					return
				}
				if status := i.wait(t); status != 0 {
					t.Errorf("exit status %d", status)
				}
			}
		})
	}
	lanes.Wait()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(text))
	if len(lines) != 2*each*times {
		t.Errorf("it ran %d times, want %d", len(lines), 2*each*times)
	}
	for i, last := 0, 0; i < len(lines); i++ {
		token := number(t, lines[i])
		if token <= last {
			t.Errorf("token %d after %d", token, last)
		}
		last = token
	}
	srv.RequireNoKeys(t, "redisson_lock_token:{job}")
}
