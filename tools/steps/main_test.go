package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// makefile has two targets that succeed only side by side: each waits for what the other leaves.
const makefile = `
good: ; @echo fine; printf 'no end'
bad: ; @echo expected 1, saw 2; exit 1
left: ; @touch left; until [ -e right ]; do sleep 0.01; done
right: ; @touch right; until [ -e left ]; do sleep 0.01; done
first: ; @touch first
second: ; @test -e first
stuck: ; @touch begun; sleep 1000
`

func steps(t *testing.T, ctx context.Context, args ...string) (ok bool, dir, out string) {
	t.Helper()
	t.Setenv("MAKELEVEL", "") // make runs this test
	t.Setenv("MAKEFLAGS", "")
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), []byte(makefile), 0o600); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	ok = (&runner{make: "make", dir: dir, out: &b}).run(ctx, args)
	return ok, dir, regexp.MustCompile(` +\d+ s, +\d+ s of processor time`).ReplaceAllString(b.String(), " TIMES")
}

func TestSteps_SayWhatFailed(t *testing.T) {
	ok, _, out := steps(t, t.Context(), "bad", "good")
	const want = `bad  | make bad
bad  | expected 1, saw 2
bad  | make: *** [Makefile:3: bad] Error 1
bad  | FAILED TIMES
good | make good
good | fine
good | no end
good | ok TIMES

=== make bad: exit status 2
expected 1, saw 2
make: *** [Makefile:3: bad] Error 1

bad  | FAILED TIMES
good | ok TIMES
in all | TIMES
failed: bad
`
	if ok || strings.ReplaceAll(out, "ok    ", "ok") != want {
		t.Errorf("%v\n%s", ok, out)
	}
}

func TestSteps_RunSideBySideAndInARow(t *testing.T) {
	if ok, _, out := steps(t, t.Context(), "left+right", "first,second+good", "second"); !ok {
		t.Error(out)
	}
	if ok, _, out := steps(t, t.Context(), "second,first"); ok {
		t.Errorf("second has not run first:\n%s", out)
	}
}

// The lane of left waits for right, which the other lane takes when it has come to its end.
func TestSteps_LanesTakeWhatBelongsToNone(t *testing.T) {
	ok, _, out := steps(t, t.Context(), "left+first/second,right,bad")
	if ok || strings.Count(out, "| make ") != 5 || !strings.HasSuffix(out, "failed: bad\n") {
		t.Error(out)
	}
}

func TestSteps_EndWhenTold(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if ok, _, out := steps(t, ctx, "good"); ok || strings.Contains(out, "fine") {
		t.Errorf("%v\n%s", ok, out)
	}
}
