package chaos

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/planted"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// hunt is a bug of package planted, and the run that must show it to a judge that is there for it. They are few: other worlds find all of them, and
// here each stands for a rule that is fed by what is this world's own, the server's file and the histories of clients.
type hunt struct {
	bug string
	by  string // what the rule's name matches, as in planted.Bugs
	run string // flags; empty: without faults and without a look at what is left
}

var hunts = []hunt{
	{"acquire does not look at the holder", "overlap|claim without hold", ""},
	{"release without owner check", "overlap|claim without hold", ""},
	{"readers cut short by one that leaves", "overlap|claim without hold|lost without cause", ""},
	{"deadline ignored", "claim without hold", ""},
	{"deadline from the reply's time", "claim without hold", "-faults slow -hasty"},
	{"TTL omitted", "ttl", ""},
	{"token not increased", "token", ""},
	{"queue served from its end", "order|queue", ""},
	{"renewal adds the owner again", "resurrection", "-faults delete -hasty -duration 9s"},
	{"messages not sent", "unheard|lost wake-up", ""},
	{"Unlock forgets to release", "forsaken hold|unheard|lost wake-up", ""},
	{"no message to the process where a lock lingers", "kept from others|refused for an idle lock", ""},
	{"renewals aborted by one bad key", "lost without cause", "-faults spoil -hasty -duration 9s"},
	{"the end of a lease is announced late", "told late", "-overstay 10 -faults none -hasty"},
	{"Unlock of a lost lease is nil", "hidden loss", "-overstay 10 -faults none -hasty"},
	{"TryLock refuses without asking", "false refusal", ""},
	{"a claim of many permits is passed by others", "order", "-faults none -hasty -duration 8s"},
	{"permits that have ended are lost", "permits", "-overstay 30 -faults none -hasty -duration 8s"},
	{"release leaves a key", "left behind", "-faults none"},
	{"acquire leaves a goroutine", "goroutines", "-faults none"},
}

// The judge is as good as what it is fed with. Each of these bugs must be found, mostly in a run of four seconds.
func TestChaos_FindsPlantedBugs(t *testing.T) {
	o := planted.New(t, "../..")
	for _, h := range hunts {
		o.PlantNamed(h.bug)
	}
	binary := o.Build(t.TempDir(), "chaos")
	found := make([]string, len(hunts))
	t.Cleanup(func() {
		table := "| bug | what it found | seconds into the run |\n|---|---|---|\n" + strings.Join(found, "\n")
		t.Logf("\n%s", table)
		if !t.Failed() {
			publish(t, "bugs", table)
		}
	})
	slots := make(chan struct{}, 5) // each run has several processes of its own
	for i, h := range hunts {
		t.Run(strings.ReplaceAll(h.bug, " ", "_"), func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			for again := range 5 { // a busy machine, or no fault at the right moment
				args := append([]string{"-test.run", "^TestChaos$", "-clients", "3", "-workers", "2", "-linger", "600ms", "-rules", h.by, "-seed", fmt.Sprint(i + 100*again + 1), "-duration", "4s"}, strings.Fields(cmp.Or(h.run, "-faults none -hasty"))...)
				if again > 0 {
					args = append(args, "-duration", "16s")
				}
				out, _ := planted.Wake(binary, h.bug, args...).CombinedOutput()
				if red := redLine.FindSubmatch(out); red != nil {
					found[i] = fmt.Sprintf("| %s | %s | %s |", h.bug, red[2], red[1])
					return
				} else if again == 4 {
					t.Errorf("not found:\n%s", out)
				}
			}
		})
	}
}

var redLine = regexp.MustCompile(`red: ([0-9.]+) s: ([a-z -]+):`)

// Without a bug the same run is green: the judge does not cry wolf.
func TestChaos_QuietRunIsGreen(t *testing.T) {
	t.Parallel()
	h, residue := Run(t, Config{Duration: 4 * time.Second, Seed: 1, Clients: 3, Workers: 2, Linger: mostLinger, Overstay: 2, Faults: none})
	if r := Judge(h, residue); len(r.Violations) > 0 || r.TakenUp == 0 {
		t.Errorf("%v", r)
	}
	dir, err := (&Report{History: h}).Save()
	redistest.Must(t, err)
	defer os.RemoveAll(dir)
	if r := Judge(load(t, filepath.Join(dir, "history.gob")), residue); len(r.Violations) > 0 {
		t.Errorf("as it was saved: %v", r)
	}
}
