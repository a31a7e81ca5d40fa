package interop

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// patience bounds the wait for an answer. It is shorter than the TTL of locks without
// a lease: who waits for that has failed.
const patience = 25 * time.Second

// peer is a process that takes and gives locks as it is told: one of Holdfast, or a JVM
// with Redisson.
type peer struct {
	*redistest.Process
	side   string // "go", "java" or "earlier"
	nextID atomic.Int64
}

// call is a command that a peer was given.
type call struct {
	t    testing.TB
	peer *peer
	id   string
	text string
}

// answer is what came of it. Times are the machine's clock, the same for all.
type answer struct {
	began, ended time.Time
	value        string
	failure      string // empty: none
}

// start gives the peer a command and does not wait. Commands for one thread run one
// after the other; a thread is an owner.
func (p *peer) start(t testing.TB, thread, verb, kind, name string, args ...any) *call {
	t.Helper()
	id := strconv.FormatInt(p.nextID.Add(1), 10)
	text := strings.TrimSuffix(fmt.Sprintln(append([]any{thread, verb, kind, name}, args...)...), "\n")
	p.Send(id + " " + text)
	return &call{t: t, peer: p, id: id, text: text}
}

// answer waits for the answer.
func (c *call) answer() answer {
	c.t.Helper()
	return c.answerWithin(patience)
}

func (c *call) answerWithin(d time.Duration) answer {
	c.t.Helper()
	line := c.peer.Await(c.t, c.id+" ", d)
	words := strings.SplitN(line, " ", 3)
	began, err1 := strconv.ParseInt(words[0], 10, 64)
	ended, err2 := strconv.ParseInt(words[1], 10, 64)
	if err1 != nil || err2 != nil || len(words) < 3 {
		c.t.Fatalf("%s answers %q with %q", c.peer.side, c.text, line)
	}
	a := answer{began: time.Unix(0, began), ended: time.Unix(0, ended), value: words[2]}
	if failure, failed := strings.CutPrefix(a.value, "!"); failed {
		a.value, a.failure = "", failure
	}
	return a
}

// want waits for the answer and fails unless it is value.
func (c *call) want(value string) answer {
	c.t.Helper()
	a := c.answer()
	if a.failure != "" || a.value != value {
		c.t.Fatalf("%s answers %q with %q %s, want %q", c.peer.side, c.text, a.value, a.failure, value)
	}
	return a
}

// wantFailure waits for the answer and fails unless it is an error with text in it.
func (c *call) wantFailure(text string) {
	c.t.Helper()
	if a := c.answer(); !strings.Contains(a.failure, text) || a.failure == "" {
		c.t.Fatalf("%s answers %q with %q %s, want an error with %q", c.peer.side, c.text, a.value, a.failure, text)
	}
}

// number waits for the answer and returns it as a number.
func (c *call) number() int64 {
	c.t.Helper()
	a := c.answer()
	n, err := strconv.ParseInt(a.value, 10, 64)
	if err != nil {
		c.t.Fatalf("%s answers %q with %q %s, want a number", c.peer.side, c.text, a.value, a.failure)
	}
	return n
}

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
	runScenarios(t, newFleet(t, earlier), func(s scenario) bool { return s.versions }, kindsInTurn)
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
