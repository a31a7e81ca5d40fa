package explore

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/planted"
)

var mutantsFlag = flag.String("mutants", "quick", "which planted bugs are looked for: quick, all, or what their names match")

// hunt is a planted bug, and where the exploration must find it.
type hunt struct {
	bug    string
	world  string // all states of it are visited; or if walks, it is walked through
	walks  int
	broken string // what is to be said, as a pattern
	quick  bool   // it is looked for on every run
}

// hunts are for bugs of package planted. First those of an earlier model, which was the protocol in small.
//
// "a message is taken while a request is on its way" is not here. The request counts as unanswered until its reply comes, so a release
// before then leaves a tombstone, which refuses the request. The rule that is left out only saves that tombstone, and no world is red.
// The bugs of a Redlock's election are searched for in package voting, whose rule they break.
var hunts = []hunt{
	// Between processes.
	{"grant trusted beyond its age", "slow grants", 2000, "the server does not know|two have", true},
	{"a message is believed after the claim was given up", "two of three in one process", 0, "the server does not know|two have|at rest", true},
	{"the message is sent before its listeners are counted", "a replica's messages", 0, "the server does not know|two have", false},
	{"deadline from the reply's time", "slow", 2000, "the server does not know|two have", true},
	{"release without owner check", "two processes", 0, "the server does not know|two have|was lost", true},
	{"cancel without clean-up", "two of three in one process", 0, "at rest|left behind|does not know", true},
	{"no tombstones", "a late copy", 0, "at rest", true},
	{"a keep makes a place", "places", 0, "at rest|order of arrival|left behind", false},
	{"a waiter does not poll", "a lost message", 0, "nothing will wake", true},
	{"a grant has no TTL", "two processes", 0, "has no TTL", true},
	{"grant to the dead that never expires", "the dead", 0, "waits forever", true},
	{"a dropped waiter returns to the tail", "stops", 2000, "order of arrival", false},

	// Inside a process.
	{"a message is taken for a later claim", "two and two", 0, "the server does not know|two have|never comes to rest|waits", true},
	{"a holder does not ask whether others wait", "slices", 2000, "more than two slices", false},
	{"the answer whether others wait is forgotten", "slices", 2000, "more than two slices", false},
	{"a request on its way is forgotten", "two of three in one process", 0, "at rest|left behind|does not know", true},
	{"a caller that leaves keeps its place", "two of three in one process", 0, "at rest|left behind|does not know", true},
	{"Close leaves the lock", "Close", 0, "at rest|left behind", true},
	{"a process that gives way has no timer", "beside Redisson", 0, "nothing will wake|time has passed", true},
	{"a process that gives way hears its own release", "beside two of Redisson's", 0, "turn of one of Redisson's", true},
	{"no process gives way", "beside Redisson", 0, "turn of one of Redisson's", true},

	// What the model did not have.
	{"acquire does not look at the holder", "two processes", 0, "the server does not know|two have|was lost", true},
	{"a writer does not look at readers", "readers of two processes", 0, "the server does not know|two have|was lost", true},
	{"a reader joins a writer", "readers of two processes", 0, "has the write side", true},
	{"TTL omitted", "two processes", 0, "has no TTL", true},
	{"readers cut short by one that leaves", "slow readers", 2000, "the server does not know|two have|left behind", true},
	{"downgrade that leaves nothing", "downgrade", 0, "the server does not know|two have", true},
	{"one of several locks is not kept", "Multi", 0, "the server does not know|two have", true},
	{"token not increased", "fencing", 0, "has the token", true},
	{"tokens of readers not increased", "fenced readers", 0, "has the token", true},
	{"messages not sent", "two processes", 0, "which does not know|time has passed", true},
	{"readers are not told", "readers and a writer", 0, "which does not know|time has passed", true},
	{"a waiter in no queue does not ask after a release", "fixed leases", 0, "nothing will wake|time has passed|which does not know", true},
	{"release leaves a key", "two processes", 0, "left behind", true},
	{"a lost reply of a release is a loss", "two processes", 0, "the lease was lost", true},
	{"queue served from its end", "fair", 0, "order of arrival", true},
	{"a lock that WithMaxHold has ended is left", "limits", 2000, "keeps the lock for no caller", true},
	{"a process that is told keeps what lingers", "WithLinger", 0, "for no caller", true},
	{"no message to the process where a lock lingers", "WithLinger", 0, "for no caller", true},
	{"replicas are not waited for", "replicas", 0, "no replica knows", true},
}

// The judges are as good as the bugs that they find, in the library's own code.
func TestMutants_AreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the library with bugs first")
	}
	o := planted.New(t, "../..")
	for _, h := range hunts {
		i := slices.IndexFunc(planted.Bugs, func(b planted.Bug) bool { return b.Name == h.bug })
		if i < 0 {
			t.Fatalf("no such bug: %q", h.bug)
		}
		o.Plant(&planted.Bugs[i])
	}
	if t.Failed() {
		t.FailNow()
	}
	binary, said := o.Build(t.TempDir(), "explore")
	if said != "" {
		t.Fatal(said)
	}
	for _, h := range hunts {
		if !h.wanted() {
			continue
		}
		t.Run(strings.ReplaceAll(h.bug, " ", "_"), func(t *testing.T) {
			run := "^TestStates$/^"
			if h.walks > 0 {
				run = "^TestWalks$/^"
			}
			began := time.Now()
			cmd := exec.Command(binary, "-test.run", run+regexp.QuoteMeta(strings.ReplaceAll(h.world, " ", "_"))+"$", "-test.timeout", "20m", "-walks", fmt.Sprint(max(1, h.walks)))
			cmd.Env = append(os.Environ(), planted.Var+"="+h.bug)
			out, _ := cmd.CombinedOutput()
			red := redLine.FindSubmatch(out)
			switch {
			case red == nil:
				t.Errorf("not found:\n%s", out)
			case !regexp.MustCompile(h.broken).Match(red[1]):
				t.Errorf("found by another judge: %s", red[1])
			default:
				t.Logf("%s (%v)", red[1], time.Since(began).Round(100*time.Millisecond))
			}
		})
	}
}

var redLine = regexp.MustCompile(`red: (.*)`)

func (h *hunt) wanted() bool {
	switch *mutantsFlag {
	case "quick":
		return h.quick
	case "all":
		return true
	}
	return regexp.MustCompile(*mutantsFlag).MatchString(h.bug)
}
