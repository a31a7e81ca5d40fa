package interop

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// earlier is a version of Holdfast in the place of Redisson: the test binary of this package, as it was at earlierCommit.
const earlier line = "earlier"

// earlierCommit is the oldest version that has to work beside this one. Until there is a release, it is the last commit with which no
// fleet has to be stopped: see docs/COMPATIBILITY.md.
const earlierCommit = "939397681babee8959f5585c44d0d1b708b2587d"

// earlierPeer is the binary, built by TestEarlierVersion.
var earlierPeer string

func (f *fleet) startEarlier(t testing.TB, flags ...string) *peer {
	t.Helper()
	args := []string{redistest.RoleEnv + "=" + peerRole, earlierPeer}
	return awaitReady(t, &peer{side: "earlier", Process: redistest.StartProgram(t, "env", slices.Concat(args, f.flags, flags)...)})
}

// Processes of two versions share one Redis, as during the upgrade of a fleet: they exclude each other, wake each other, keep one order and
// one count of tokens, and each outlives the death of the other.
func TestEarlierVersion(t *testing.T) {
	earlierPeer = buildEarlier(t)
	runScenarios(t, newFleet(t, earlier), func(s scenario) bool { return s.versions })
}

// buildEarlier builds the earlier version. Without the repository's history that is impossible: HOLDFAST_INTEROP=require makes it a failure.
func buildEarlier(t *testing.T) string {
	t.Helper()
	git := func(args ...string) ([]byte, error) {
		command := exec.Command("git", args...)
		command.Dir = filepath.Join("..", "..")
		return command.Output()
	}
	source, err := git("archive", earlierCommit)
	if err != nil { // a clone without history
		_, _ = git("fetch", "--quiet", "--depth=1", "origin", earlierCommit)
		source, err = git("archive", earlierCommit)
	}
	if err != nil {
		if os.Getenv(gate) == "require" {
			t.Fatalf("no commit %s here, and %s=require: %v", earlierCommit, gate, err)
		}
		t.Skipf("no commit %s here: %v", earlierCommit, err)
	}
	dir := t.TempDir()
	unpack := exec.Command("tar", "-x", "-C", dir)
	unpack.Stdin = bytes.NewReader(source)
	binary := filepath.Join(t.TempDir(), "earlier")
	build := exec.Command("go", "test", "-c", "-vet=off", "-o", binary, "./internal/interop")
	build.Dir = dir
	for _, command := range []*exec.Cmd{unpack, build} {
		if said, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command.Args, err, said)
		}
	}
	return binary
}
