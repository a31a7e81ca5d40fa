package load

import (
	"errors"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

var testServer *Server

func TestMain(m *testing.M) {
	if Work() {
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	pinning, err := Pin()
	if err == nil {
		testServer, err = StartServer(pinning)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		return 1
	}
	defer testServer.Stop()
	return m.Run()
}

func fleet(server *Server, library string, apart bool, jobs ...Job) *Fleet {
	return &Fleet{
		Server: server, Library: contender.Pick(library)[0], Window: time.Second, Jobs: jobs, Apart: apart,
	}
}

// An overlap must not go unseen, be it between goroutines, processes, or a writer and a
// reader.
func TestCrowdsTellOverlap(t *testing.T) {
	work := time.Millisecond
	for name, f := range map[string]*Fleet{
		"goroutines":           fleet(testServer, contender.Unlocked, false, Job{Process: 1, Callers: 2}),
		"processes":            fleet(testServer, contender.Unlocked, true, Job{Process: 1, Callers: 1}, Job{Process: 2, Callers: 1}),
		"processes, with work": fleet(testServer, contender.Unlocked, true, Job{Process: 1, Callers: 1, Hold: work}, Job{Process: 2, Callers: 1, Hold: work}),
		"readers":              fleet(testServer, contender.Unlocked, false, Job{Process: 1, Callers: 4, Reads: .9, Hold: work}),
		"permits":              fleet(testServer, contender.Unlocked, false, Job{Process: 1, Callers: contender.Permits + 1, Reads: 1, Hold: work}),
	} {
		t.Run(name, func(t *testing.T) {
			if name == "permits" {
				f.Library.Kind = contender.Permit
			}
			_, err := f.Measure(t.Context())
			if v := (Violation{}); !errors.As(err, &v) {
				t.Errorf("callers without a lock: %v", err)
			}
		})
	}
}

// A hand-off takes the way to the server and the way to the other process.
func TestFleetAtADistance(t *testing.T) {
	f := fleet(testServer, "message", true, Job{Process: 1, Callers: 1, Hold: time.Millisecond}, Job{Process: 2, Callers: 1, Hold: time.Millisecond})
	f.Way = 5 * time.Millisecond
	v, err := f.Measure(t.Context())
	redistest.Must(t, err)
	// A bucket of the histogram is 3 % wide.
	if least := v.Handovers.Quantile(0); v.Handovers.Count() == 0 || least < 2*f.Way*15/16 {
		t.Errorf("%d hand-overs, the fastest in %v", v.Handovers.Count(), least)
	}
	if err := testServer.Reset(t.Context()); err != nil { // it tells of connections that are left
		t.Error(err)
	}
}

// All of these libraries take a free lock, and give it back, with one command each; an election says who leads as well.
func TestCommandsOfAPair(t *testing.T) {
	for _, l := range contender.InGo() {
		t.Run(l.Name, func(t *testing.T) {
			const n = 20
			ctx := t.Context()
			redistest.Must(t, testServer.Reset(ctx))
			c, err := l.Open(testServer.Address(), holdfast.DefaultLease)
			redistest.Must(t, err)
			defer c.Close()
			pairs := func(n int) {
				for range n {
					redistest.Must(t, contender.Pair(ctx, c, "commands"))
				}
			}
			pairs(100) // until connections have been opened and tried
			u, err := testServer.Usage(ctx, l.Direct)
			redistest.Must(t, err)
			pairs(n)
			sent, err := u.SoFar(ctx)
			redistest.Must(t, err)
			want := int64(2 * n)
			if l.Name == contender.Lingering {
				return // its pairs are no commands, but for a question now and then: see the scenario linger
			}
			if l.Name == "holdfast-election" {
				want *= 2
			}
			if sent.Commands != want {
				t.Errorf("%d commands for %d pairs, want %d", sent.Commands, n, want)
			}
			if h, ok := c.(*contender.Holdfast); ok {
				// Its own count has the warm-up in it.
				if own := h.Manager.Stats().Commands; own < uint64(sent.Commands) {
					t.Errorf("Redis counts %d commands, Stats %d", sent.Commands, own)
				}
			}
		})
	}
}

func TestBucketsAreNarrowAndInOrder(t *testing.T) {
	last := -1
	for v := uint64(1); v < math.MaxInt64/2; v += v/50 + 1 {
		i := bucket(v)
		if i < last {
			t.Fatalf("bucket of %d is %d, below that of a smaller value", v, i)
		}
		last = i
		if m := float64(middle(i)); math.Abs(m-float64(v)) > .02*float64(v) {
			t.Fatalf("%d counts as %v", v, m)
		}
	}
	if i := bucket(math.MaxInt64); i >= len(Histogram{}.buckets) {
		t.Fatalf("bucket %d does not exist", i)
	}
}

func TestQuantiles(t *testing.T) {
	var h Histogram
	for i := range 1000 {
		h.Record(time.Duration(i+1) * time.Microsecond)
	}
	for q, want := range map[float64]time.Duration{.5: 500 * time.Microsecond, .99: 990 * time.Microsecond, 1: time.Millisecond} {
		if got := h.Quantile(q); math.Abs(float64(got-want)) > .03*float64(want) {
			t.Errorf("quantile %v is %v, want about %v", q, got, want)
		}
	}
	if h.Max() != time.Millisecond {
		t.Errorf("max is %v", h.Max())
	}
	if got := new(Histogram).Quantile(.5); got != 0 {
		t.Errorf("median of nothing is %v", got)
	}
}
