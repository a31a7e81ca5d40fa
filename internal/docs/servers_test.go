package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ours is the server in the PATH, on which make test runs.
const ours = "Redis 7.0"

// servers are those that tools/servers.sh fetches: Valkey 9.1 and its whole version.
func servers(t *testing.T) map[string]string {
	t.Helper()
	out, err := exec.Command("sh", "tools/servers.sh", "list").Output()
	all := make(map[string]string)
	for _, m := range regexp.MustCompile(`(?m)^(\w)(\w+)-((\d+\.\d+)\.\d+)$`).FindAllStringSubmatch(string(out), -1) {
		all[strings.ToUpper(m[1])+m[2]+" "+m[4]] = m[3]
	}
	if err != nil || len(all) < 3 {
		t.Fatalf("%q, %v", out, err)
	}
	return all
}

// docs/SETUP.md and README.md list the servers that the tests run on, and no others.
func TestDocs_ServersAreThoseOfTheTests(t *testing.T) {
	_, section, _ := strings.Cut(read(t, "docs/SETUP.md"), "\n## Servers\n")
	section, _, _ = strings.Cut(section, "\n## ")
	listed := make(map[string]string)
	for _, row := range regexp.MustCompile(`(?m)^\| ((?:Redis|Valkey) [\d.]+) \| ([\d.]+) \|`).FindAllStringSubmatch(section, -1) {
		listed[row[1]] = row[2]
	}
	want := []string{ours}
	for name, version := range servers(t) {
		want = append(want, name)
		if listed[name] != version {
			t.Errorf("docs/SETUP.md has %s as %q, want %q", name, listed[name], version)
		}
	}
	if len(listed) != len(want) {
		t.Errorf("docs/SETUP.md lists %v, the tests run on %q", listed, want)
	}
	sentence := regexp.MustCompile(`It is tested on (.*?)\(`).FindStringSubmatch(read(t, "README.md"))
	var named []string
	kind := ""
	for _, word := range regexp.MustCompile(`Redis|Valkey|[\d.]+`).FindAllString(sentence[1], -1) {
		if word == "Redis" || word == "Valkey" {
			kind = word
			continue
		}
		named = append(named, kind+" "+word)
	}
	slices.Sort(named)
	slices.Sort(want)
	if !slices.Equal(named, want) {
		t.Errorf("README.md names %q, the tests run on %q", named, want)
	}
}

// Without a network servers.sh reports what it has not tested and passes, so that the rest of CI runs; if the
// servers are required it fails. A name that it does not know is always a failure.
func TestDocs_ServersWithoutNetwork(t *testing.T) {
	t.Parallel()
	const notTested = "NOT TESTED, since they cannot be fetched here: redis-8.2.3"
	for _, c := range []struct {
		server, policy, want string
		ok                   bool
	}{
		{"redis-8.2.3", "", notTested, true},
		{"redis-8.2.3", "require", notTested, false},
		{"redis-1", "", "servers: failed on: redis-1", false},
	} {
		cmd := exec.Command("sh", "tools/servers.sh", "short", c.server)
		cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir(), // nothing has been fetched before
			"PIP_INDEX_URL=http://127.0.0.1:1/simple", "HOLDFAST_SERVERS="+c.policy)
		out, err := cmd.CombinedOutput()
		if (err == nil) != c.ok || !strings.Contains(string(out), c.want) {
			t.Errorf("%+v: %v\n%s", c, err, out)
		}
	}
}

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
