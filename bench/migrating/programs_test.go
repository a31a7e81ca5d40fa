// Package migrating has the programs of docs/MIGRATING.md: a payment under a lock of each library, and under one of Holdfast.
package migrating

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Each program that needs only Redis runs as a reader would copy it, but for the address. go vet compiles those for etcd and Consul.
func TestPrograms_Run(t *testing.T) {
	srv := redistest.Start(t, redistest.WithoutPassword())
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, library := range []string{"redsync", "redislock", "rueidislock", "both", "holdfast", "own"} {
		program, err := os.ReadFile(library + "/main.go")
		if err != nil {
			t.Fatal(err)
		}
		here := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(here, []byte(strings.ReplaceAll(string(program), "localhost:6379", srv.Addr())), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(dir, library, "main.go"): here}})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "overlay.json")
		if err := os.WriteFile(file, overlay, 0o600); err != nil {
			t.Fatal(err)
		}
		if said, err := exec.Command("go", "run", "-overlay", file, "./"+library).CombinedOutput(); err != nil || string(said) != "charged account 7\n" {
			t.Errorf("%s: %v\n%s", library, err, said)
		}
	}
	if keys := srv.Admin().Keys(t.Context(), "*").Val(); len(keys) != 0 {
		t.Errorf("left behind: %q", keys)
	}
}
