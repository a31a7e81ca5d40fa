package explore

import (
	"flag"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/planted"
)

var mutantsFlag = flag.String("mutants", "", "which planted bugs are looked for: what their names match; empty: all")

// hunt is a planted bug, and where the exploration must find it.
type hunt struct {
	bug   string
	world string // all states of it are visited; or if walks, it is walked through
	walks int
	by    string // the rule that is broken, as a pattern
}

// hunts are for bugs of package planted. First those of an earlier model, which was the protocol in small.
//
// "a message is taken while a request is on its way" is not here. The request counts as unanswered until its reply comes, so a release
// before then leaves a tombstone, which refuses the request. The rule that is left out only saves that tombstone, and no world is red.
// The bugs of a Redlock's election are searched for in package voting, whose rule they break.
var hunts = []hunt{
	// Between processes.
	{"grant trusted beyond its age", "slow grants", 2000, "claim without hold|overlap"},
	{"a message is believed after the claim was given up", "two of three in one process", 0, "claim without hold|overlap|forsaken hold"},
	{"the message is sent before its listeners are counted", "a replica's messages", 0, "claim without hold|overlap"},
	{"deadline from the reply's time", "slow", 2000, "claim without hold|overlap"},
	{"release without owner check", "two processes", 0, "claim without hold|overlap|lost without cause"},
	{"cancel without clean-up", "two of three in one process", 0, "forsaken hold|left behind|unheard"},
	{"no tombstones", "a late copy", 0, "forsaken hold"},
	{"a keep makes a place", "places", 0, "forsaken hold|queue|order|left behind"},
	{"a waiter does not poll", "a lost message", 0, "lost wake-up"},
	{"a grant has no TTL", "two processes", 0, "ttl"},
	{"grant to the dead that never expires", "the dead", 0, "starved"},
	{"a dropped waiter returns to the tail", "stops", 2000, "queue|order"},

	// Inside a process.
	{"a message is taken for a later claim", "two and two", 0, "claim without hold|overlap|runs away|starved"},
	{"a request on its way is forgotten", "two of three in one process", 0, "forsaken hold|left behind|unheard"},
	{"a caller that leaves keeps its place", "two of three in one process", 0, "forsaken hold|left behind|unheard"},
	{"Close leaves the lock", "Close", 0, "forsaken hold|left behind"},
	{"a process that gives way has no timer", "beside Redisson", 0, "lost wake-up"},
	{"a process that gives way hears its own release", "beside two of Redisson's", 0, "turn"},
	{"no process gives way", "beside Redisson", 0, "turn"},

	// What the model did not have.
	{"acquire does not look at the holder", "two processes", 0, "claim without hold|overlap|lost without cause"},
	{"a writer does not look at readers", "readers of two processes", 0, "claim without hold|overlap|lost without cause"},
	{"a reader joins a writer", "readers of two processes", 0, "overlap|claim without hold"},
	{"TTL omitted", "two processes", 0, "ttl"},
	{"readers cut short by one that leaves", "slow readers", 2000, "claim without hold|overlap|left behind"},
	{"downgrade that leaves nothing", "downgrade", 0, "claim without hold|overlap"},
	{"one of several locks is not kept", "Multi", 0, "claim without hold|overlap"},
	{"token not increased", "fencing", 0, "token"},
	{"tokens of readers not increased", "fenced readers", 0, "token"},
	{"messages not sent", "two processes", 0, "unheard|lost wake-up"},
	{"readers are not told", "readers and a writer", 0, "unheard|lost wake-up"},
	{"a waiter in no queue does not ask after a release", "fixed leases", 0, "lost wake-up|unheard"},
	{"release leaves a key", "two processes", 0, "left behind"},
	{"a lost reply of a release is a loss", "two processes", 0, "lost without cause|false loss"},
	{"queue served from its end", "fair", 0, "queue|order"},
	{"a lock that WithMaxHold has ended is left", "limits", 2000, "forsaken hold|kept from others"},
	{"a process that is told keeps what lingers", "WithLinger", 0, "forsaken hold|kept from others"},
	{"no message to the process where a lock lingers", "WithLinger", 0, "forsaken hold|kept from others"},
	{"replicas are not waited for", "replicas", 0, "not acknowledged"},

	// Of semaphores.
	{"permits come back twice", "permits", 0, "permits|overlap"},
	{"a renewal of permits adds them again", "Extend of permits", 0, "permits|forsaken hold"},
	{"no tombstone of a claim of permits", "a late copy of permits", 0, "forsaken hold"},
	{"a claim of many permits is passed by others", "turns of three", 0, "order"},
	{"permits that have ended are lost", "permits of the dead, beside Redisson", 0, "permits"},
	{"a deleted number forgets the permits that are held", "a deleted number", 0, "permits|overlap"},
}

// The judges are as good as the bugs that they find, in the library's own code.
func TestMutants_AreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the library with bugs first")
	}
	o := planted.New(t, "../..")
	for _, h := range hunts {
		o.PlantNamed(h.bug)
	}
	binary := o.Build(t.TempDir(), "explore")
	for _, h := range hunts {
		if !regexp.MustCompile(*mutantsFlag).MatchString(h.bug) {
			continue
		}
		t.Run(strings.ReplaceAll(h.bug, " ", "_"), func(t *testing.T) {
			run := "^TestStates$/^"
			if h.walks > 0 {
				run = "^TestWalks$/^"
			}
			began := time.Now()
			cmd := planted.Wake(binary, h.bug, "-test.run", run+regexp.QuoteMeta(strings.ReplaceAll(h.world, " ", "_"))+"$", "-test.timeout", "20m", "-walks", fmt.Sprint(max(1, h.walks)))
			out, _ := cmd.CombinedOutput()
			red := redLine.FindSubmatch(out)
			switch {
			case red == nil:
				t.Errorf("not found:\n%s", out)
			case !regexp.MustCompile(h.by).Match(red[1]):
				t.Errorf("found by another judge: %s", red[1])
			default:
				t.Logf("%s (%v)", red[0], time.Since(began).Round(100*time.Millisecond))
			}
		})
	}
}

var redLine = regexp.MustCompile(`red: ([^:]*): .*`)
