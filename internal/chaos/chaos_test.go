package chaos

import (
	"flag"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

var (
	duration = flag.Duration("duration", 10*time.Second, "length of TestChaos")
	seed     = flag.Uint64("seed", 0, "seed of TestChaos; 0 draws one")
	clients  = flag.Int("clients", 4, "client processes of TestChaos")
	workers  = flag.Int("workers", 3, "callers in each of them")
)

func TestMain(m *testing.M) {
	os.Exit(redistest.Main(m, Roles(seams)))
}

// The library under everything at once: no judge finds anything.
func TestChaos(t *testing.T) {
	cfg := Config{Duration: *duration, Seed: *seed, Clients: *clients, Workers: *workers}
	if cfg.Seed == 0 {
		cfg.Seed = rand.Uint64N(1 << 32)
	}
	t.Logf("seed %d", cfg.Seed)
	h, residue := Run(t, cfg)
	r := Judge(h, residue)
	t.Logf("%v", r)
	if len(r.Violations) > 0 {
		t.Errorf("%d violations", len(r.Violations))
	}
}
