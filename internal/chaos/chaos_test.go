package chaos

import (
	"encoding/gob"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/judge"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// mostLinger is the longest time for which a process keeps a lock (WithLinger), if no flag says another. It is longer than a second, after
// which a process looks for waiters that cannot ask.
const mostLinger = 2 * time.Second

var (
	duration = flag.Duration("duration", usual(), "length of TestChaos")
	seed     = flag.Uint64("seed", 0, "seed of TestChaos; 0 draws one")
	clients  = flag.Int("clients", 4, "client processes of TestChaos")
	history  = flag.String("history", "", "a saved history.gob, to be judged again instead of a run")
	update   = flag.Bool("update", false, "write the results into docs/internals/VERIFICATION.md")
	workers  = flag.Int("workers", 3, "callers in each of them")
	linger   = flag.Duration("linger", mostLinger, "the longest time for which processes keep locks")
	overstay = flag.Int("overstay", 2, "percent of the operations that keep a lease beyond its end")
	hasty    = flag.Bool("hasty", false, "look for nothing at the end of TestChaos")
	only     = flag.String("faults", "", "a pattern: only faults of these names; none: none")
	rules    = flag.String("rules", "", "a run is red only by rules whose names this matches")
)

// usual is how long TestChaos lasts without a flag.
func usual() time.Duration {
	if redistest.Quick() {
		return 8 * time.Second
	}
	return 15 * time.Second
}

func TestMain(m *testing.M) {
	os.Exit(redistest.Main(m, Roles()))
}

// The library under everything at once: no judge finds anything.
func TestChaos(t *testing.T) {
	cfg := Config{Duration: *duration, Seed: *seed, Clients: *clients, Workers: *workers, Linger: *linger, Overstay: *overstay, Faults: *only, Hasty: *hasty}
	if cfg.Seed == 0 {
		cfg.Seed = rand.Uint64N(1 << 32)
	}
	var r *Report
	if *history != "" {
		r = Judge(load(t, *history), Residue{})
	} else {
		t.Logf("seed %d", cfg.Seed)
		h, residue := Run(t, cfg)
		r = Judge(h, residue)
	}
	t.Logf("%v", r)
	for what, n := range r.figures() {
		t.Attr(what, fmt.Sprint(n))
	}
	r.Violations = slices.DeleteFunc(r.Violations, func(v judge.Violation) bool { return !regexp.MustCompile(*rules).MatchString(v.Rule) })
	if len(r.Violations) > 0 {
		v := r.Violations[0]
		t.Errorf("red: %.1f s: %s: %s", v.At.Seconds(), v.Rule, v.Text)
		if *rules != "" {
			return
		}
		dir, err := r.Save()
		t.Fatalf("%d violations; timelines and history are in %s (%v)", len(r.Violations), dir, err)
	}
	if *history == "" {
		publish(t, "chaos", "```text\n"+strings.TrimSpace(r.String())+"\n```")
	}
}

func load(t *testing.T, file string) *History {
	f, err := os.Open(file)
	redistest.Must(t, err)
	defer f.Close()
	h := new(History)
	redistest.Must(t, gob.NewDecoder(f).Decode(h))
	return h
}

// publish puts text between the comments of that name in docs/internals/VERIFICATION.md, with -update.
func publish(t *testing.T, name, text string) {
	const file = "../../docs/internals/VERIFICATION.md"
	if !*update {
		return
	}
	doc, err := os.ReadFile(file)
	redistest.Must(t, err)
	begin, end := "<!-- "+name+" -->\n", "\n<!-- /"+name+" -->"
	before, rest, ok1 := strings.Cut(string(doc), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place for %s", file, name)
	}
	redistest.Must(t, os.WriteFile(file, []byte(before+begin+text+end+after), 0o644))
}

// figures are the worst of a run, by the promise they are about.
func (r *Report) figures() map[string]any {
	ms := func(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
	return map[string]any{
		"S1:overlaps": r.count("overlap", "claim without hold"), "S3:wrong-counts": r.count("count"),
		"S4:holds-that-another-deleted": r.count("claim without hold"), "S6:owners-that-came-back": r.count("resurrection"),
		"S7:keys-without-TTL": r.count("ttl"), "S9:inversions": r.count("token"),
		"S11:answers-that-are-not-true": r.count(untrue...),
		"P3:permits-lost-or-made":       r.count("permits"),
		"N1:told-after-the-deadline":    ms(r.Late), "N3:losses-without-cause": r.count("lost without cause", "false loss"),
		"L2:lost-wake-ups": r.count("lost wake-up", "unheard"), "L5:overtaken-in-the-queue": r.count("order", "queue"),
		"L7:longest-wait-of-a-fresh-client": ms(r.Residue.Probe), "L7:longest-wait-of-any": ms(r.Longest),
		"H1:keys-left": len(r.Residue.Belongings) + len(r.Residue.Keys), "H2:holds-without-a-lease": r.count("forsaken hold"),
		"H3:goroutines-left": len(r.Residue.Goroutines), "H4:subscriptions-left": len(r.Residue.Subscriptions) + r.Residue.Connections,
	}
}
