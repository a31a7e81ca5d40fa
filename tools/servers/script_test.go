package main

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// Without a network servers.sh reports what it has not tested and passes, so that the rest of CI runs; if the
// servers are required it fails. A name that the table does not have is always a failure.
func TestScript_WithoutNetwork(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a shell script")
	}
	builds, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, args, policy, want string
		status                   int
	}{
		{"all", "all", "", "NOT TESTED, since they cannot be fetched here: valkey-9.1.2 redis-8.2.3 redis-6.2.14", 0},
		{"named", "short redis-8.2.3", "", "NOT TESTED, since they cannot be fetched here: redis-8.2.3", 0},
		{"required", "short redis-8.2.3", "require", "NOT TESTED, since they cannot be fetched here: redis-8.2.3", 1},
		{"unknown", "short redis-1", "", "servers: failed on: redis-1", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command("sh", append([]string{"tools/servers.sh"}, strings.Fields(c.args)...)...)
			cmd.Dir = "../.."
			cmd.Env = append(os.Environ(),
				"HOME="+t.TempDir(), "XDG_CACHE_HOME="+t.TempDir(), // nothing has been fetched before
				"GOCACHE="+strings.TrimSpace(string(builds)),
				"PIP_INDEX_URL=http://127.0.0.1:1/simple", "HOLDFAST_SERVERS="+c.policy)
			out, err := cmd.CombinedOutput()
			status := 0
			if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
				status = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			if status != c.status || !strings.Contains(string(out), c.want) {
				t.Errorf("status %d, want %d, and %q in\n%s", status, c.status, c.want, out)
			}
		})
	}
}
