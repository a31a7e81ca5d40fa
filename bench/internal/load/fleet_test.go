package load

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
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
	} {
		t.Run(name, func(t *testing.T) {
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
	if err != nil {
		t.Fatal(err)
	}
	// A bucket of the histogram is 3 % wide.
	if least := v.Handovers.Quantile(0); v.Handovers.Count() == 0 || least < 2*f.Way*15/16 {
		t.Errorf("%d hand-overs, the fastest in %v", v.Handovers.Count(), least)
	}
	if err := testServer.Reset(t.Context()); err != nil { // it tells of connections that are left
		t.Error(err)
	}
}
