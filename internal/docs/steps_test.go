package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Of left and right each waits for what the other leaves: they succeed only side by side.
const stepsMakefile = `
good: ; @echo fine; printf 'no end'
bad: ; @echo expected 1, saw 2; exit 1
left: ; @touch left; until [ -e right ]; do sleep 0.01; done
right: ; @touch right; until [ -e left ]; do sleep 0.01; done
first: ; @touch first
second: ; @test -e first
`

// CI and make run their targets by tools/steps.sh: it goes on after a failure, says at the end what has failed, and fails.
func TestSteps(t *testing.T) {
	t.Parallel()
	script, err := filepath.Abs("tools/steps.sh")
	must(t, err)
	for args, want := range map[string]string{
		"bad good":                            "good          | no end\n",
		"left+right first,second+good second": "\nsecond        | ok ",
		"second,first":                        "\nfailed: second \n",
		"left+first/second,right,bad":         "\n=== make bad\nexpected 1, saw 2\n", // left waits for right, which the other lane takes
	} {
		cmd := exec.Command("bash", append([]string{script}, strings.Fields(args)...)...)
		cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "MAKE=make", "MAKELEVEL=", "MAKEFLAGS=") // make runs this test
		must(t, os.WriteFile(filepath.Join(cmd.Dir, "Makefile"), []byte(stepsMakefile), 0o600))
		out, err := cmd.CombinedOutput()
		ran := strings.Count(string(out), "| make ")
		if failed := strings.Contains(string(out), "\nfailed: "); !strings.Contains(string(out), want) || failed != (err != nil) || failed != strings.Contains(string(out), "FAILED") || ran != len(strings.FieldsFunc(args, func(c rune) bool { return strings.ContainsRune(" ,+/", c) })) {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
}
