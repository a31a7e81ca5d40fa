package topology

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// The scenarios of the report, in its order.
const (
	sentinelKill    = "Sentinel, master killed"
	sentinelRequest = "Sentinel, fail-over on request, under load"
	clusterGraceful = "Cluster, graceful fail-over, under load"
	clusterForced   = "Cluster, forced fail-over, under load"
	clusterKill     = "Cluster, master killed, under load"
	clusterReshard  = "Cluster, slot moves to another master, under load"
)

var scenarios = []string{sentinelKill, sentinelRequest, clusterGraceful, clusterForced, clusterKill, clusterReshard}

// row is what one scenario did to locks: a line of the report.
type row struct {
	scenario string
	replicas int  // of WithReplicas
	lossless bool // Redis loses nothing: an overlap fails the test

	faults              int
	kept, lost, refused int // locks that were held, or could not be had, at a fault
	pairs               int // of Lock and Unlock under load
	overlaps            int // two leases of a lock were valid at a time
	overlap             time.Duration
	unavailable         time.Duration // longest without a grant
	behind              time.Duration // longest from the election of a new master to a grant
}

// acksWithin is how long a grant of WithReplicas waits. With less, a busy machine is taken
// for a replica that does not answer; TryLock waits for a second in all.
const acksWithin = 700 * time.Millisecond

// scenario runs play without and with WithReplicas and publishes what it reports.
func scenario(t *testing.T, name string, lossless bool, play func(t *testing.T, r *row)) {
	t.Parallel()
	for _, n := range []int{0, 1} {
		t.Run(fmt.Sprintf("WithReplicas(%d)", n), func(t *testing.T) {
			t.Parallel()
			r := &row{scenario: name, replicas: n, lossless: lossless}
			play(t, r)
			if lossless && r.overlaps+r.lost > 0 {
				t.Errorf("%d overlaps, %d locks lost, where no data was lost", r.overlaps, r.lost)
			}
			published.add(*r)
		})
	}
}

// rounds is how many faults there are: of those that make a difference, one of each kind
// at least.
func (r *row) rounds() int {
	switch {
	case *rounds > 0:
		return *rounds
	case r.replicas > 0:
		return 2
	}
	return 3
}

// options are those of the managers; every pair goes to Redis.
func (r *row) options() []holdfast.Option {
	return []holdfast.Option{holdfast.WithHandoffSlice(0), holdfast.WithReplicas(r.replicas, acksWithin)}
}

// judge finds out what became of a lock that was held at a fault, and gives it back. It
// reports whether it was kept.
func (r *row) judge(t *testing.T, held *holdfast.Lease, other holdfast.Locker) bool {
	t.Helper()
	var got *holdfast.Lease
	var err error
	redistest.Eventually(t, patience, "Redis can be asked", func() bool { // a redirected request with WAIT was refused
		got, err = other.TryLock(within(t))
		return !errors.Is(err, holdfast.ErrUnavailable)
	})
	switch {
	case errors.Is(err, holdfast.ErrNotAcquired):
		r.kept++
		redistest.Eventually(t, patience, "the holder has found its server", func() bool {
			err = held.Extend(within(t), lease)
			return !errors.Is(err, holdfast.ErrUnavailable)
		})
		if err != nil || held.Err() != nil {
			t.Errorf("kept by Redis, and the holder was told %v, %v", err, held.Err())
		}
		locktest.MustUnlock(t, held)
		return true
	case err != nil:
		t.Fatalf("TryLock after the fault: %v", err)
	}
	r.lost++
	if begun := time.Now(); held.Valid() {
		r.overlaps++
		awaitLoss(t, held)
		r.overlap = max(r.overlap, time.Since(begun))
	} else {
		awaitLoss(t, held)
	}
	locktest.MustUnlock(t, got)
	return false
}

// awaitLoss fails unless the holder is told of its loss by its deadline.
func awaitLoss(t *testing.T, held *holdfast.Lease) {
	t.Helper()
	select {
	case <-held.Done():
	case <-time.After(lease + patience):
		t.Fatal("the holder was not told")
	}
	var why *holdfast.LostError
	if !errors.As(held.Err(), &why) {
		t.Errorf("the holder was told %v", held.Err())
	}
}

// report is the rows of all scenarios that were played.
type report struct {
	mu   sync.Mutex
	rows []row // guarded by mu
}

var published report

func (p *report) add(r row) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rows = append(p.rows, r)
}

// String is a table of Markdown.
func (p *report) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.SortFunc(p.rows, func(a, b row) int {
		return 2*(slices.Index(scenarios, a.scenario)-slices.Index(scenarios, b.scenario)) + a.replicas - b.replicas
	})
	var b strings.Builder
	b.WriteString("| scenario | `WithReplicas` | faults | held locks: kept, lost, refused | pairs under load | overlaps | longest unavailability | after the election |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|\n")
	for _, r := range p.rows {
		overlaps := fmt.Sprint(r.overlaps)
		switch {
		case r.lossless:
			overlaps += ", asserted"
		case r.overlap > 0:
			overlaps += fmt.Sprintf(", of up to %.1f s", r.overlap.Seconds())
		}
		behind := ""
		if r.behind > 0 {
			behind = fmt.Sprintf("%.2f s", r.behind.Seconds())
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d, %d, %d | %d | %s | %.1f s | %s |\n", r.scenario, r.replicas, r.faults,
			r.kept, r.lost, r.refused, r.pairs, overlaps, r.unavailable.Seconds(), behind)
	}
	return b.String()
}

const (
	document    = "../../docs/OPERATIONS.md"
	tableBegins = "<!-- topologies -->\n"
	tableEnds   = "<!-- /topologies -->"
)

// write prints the report and, if asked to, puts it into the document.
func (p *report) write(update bool) error {
	if len(p.rows) == 0 {
		return nil
	}
	fmt.Print(p)
	if !update {
		return nil
	}
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), tableBegins)
	_, after, ok2 := strings.Cut(rest, tableEnds)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no place for the report", document)
	}
	return os.WriteFile(document, []byte(before+tableBegins+p.String()+tableEnds+after), 0o644)
}

// The document's table is of these scenarios, with and without WithReplicas.
func TestReport_IsInTheDocument(t *testing.T) {
	text, err := os.ReadFile(document)
	redistest.Must(t, err)
	_, rest, _ := strings.Cut(string(text), tableBegins)
	table, _, _ := strings.Cut(rest, tableEnds)
	for _, s := range scenarios {
		for _, n := range []int{0, 1} {
			if !strings.Contains(table, fmt.Sprintf("| %s | %d |", s, n)) {
				t.Errorf("%s has no row %q for WithReplicas(%d): make topology writes it", document, s, n)
			}
		}
	}
}
