package bench

import (
	"context"

	"github.com/holdfast-go/holdfast/bench/internal/load"
)

// measureCrowds has the callers of one or several processes use locks for a window.
func measureCrowds(ctx context.Context, t trial) (metrics, error) {
	return t.crowds(ctx, t.jobs(false))
}

// jobs are those of the row: the same for each of its processes.
func (t trial) jobs(distinct bool) []load.Job {
	var jobs []load.Job
	for i := range max(t.procs, 1) {
		jobs = append(jobs, load.Job{
			Process: int64(i) + 1, Callers: t.n, First: i * t.n, Distinct: distinct, Hold: t.hold, Reads: t.reads,
		})
	}
	return jobs
}

// fleet has one process per job, or does a single job of a Go library in this process
// if the row does not ask for processes.
func (t trial) fleet(jobs []load.Job) *load.Fleet {
	return &load.Fleet{Server: t.server, Library: t.library, Window: t.window, Jobs: jobs, Apart: t.procs > 0, Way: t.way}
}

// crowds has a fleet do jobs for a window.
func (t trial) crowds(ctx context.Context, jobs []load.Job) (metrics, error) {
	v, err := t.fleet(jobs).Measure(ctx)
	if err != nil {
		return nil, err
	}
	seconds := v.Elapsed.Seconds()
	grants := float64(v.Waits.Count() + v.Reads.Count())
	starved := 0
	for _, n := range v.Grants {
		if n == 0 {
			starved++
		}
	}
	longest := max(v.Waits.Max(), v.Reads.Max(), v.Unfinished)
	m := metrics{
		unitRate:           grants / seconds,
		unitWait + unitMax: milliseconds(longest),
		unitJain:           jain(v.Grants),
		unitStarved:        float64(starved),
		unitClient:         microseconds(v.CPU) / float64(v.Pairs),
		unitRoutines:       float64(v.Taken.Goroutines),
		unitMemory:         float64(v.Taken.Memory) / (1 << 20),
		unitConns:          float64(v.Conns),
	}
	if v.Writes > 0 {
		m[unitOverlaps] = 0 // or it would not have come so far
	}
	if len(v.Each) > 1 {
		m[unitJainProc] = jain(v.Each)
	}
	m.quantiles(unitWait, &v.Waits)
	m.quantiles("read-"+unitWait, &v.Reads)
	m.quantiles(unitHandover, &v.Handovers)
	// What each would wait if all waited the same; a mean over grants alone would leave
	// out those who never had one. A window of less than two of these says nothing.
	if mean := float64(v.Callers) * seconds / grants; 2*mean < seconds {
		m[unitLongest] = longest.Seconds() / mean
	}
	if v.Reads.Count() > 0 {
		m[unitReads] = float64(v.Reads.Count()) / seconds
		m[unitWrites] = float64(v.Waits.Count()) / seconds
	}
	if v.During > 0 {
		m.perPair(v.Sent, v.During)
	}
	return m, nil
}
