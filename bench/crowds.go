package bench

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
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

// oneName asks how a lock goes round in a process.
var oneName = scenario{
	name:      "onename",
	question:  "How often, how evenly and at what price does one lock change hands among the goroutines of a process that all want it all the time?",
	rows:      goroutines(2, 16, 128, 1000),
	libraries: contender.Pick(contender.Ours, "redsync", "redsync-1ms", "redislock", "redislock-1ms", "rueidislock", "r8-pubsub", "redisson"),
	headline:  unitRate,
	shown:     []string{unitRate, unitWait + unitP50, unitWait + unitP99, unitWait + unitMax, unitJain, unitStarved, unitCommands, unitServer, unitClient, unitRoutines, unitConns, unitMemory},
	measure:   measureCrowds,
}

// distinct asks how many locks a process can take when none is in another's way.
var distinct = scenario{
	name:      "distinct",
	question:  "How many pairs of Lock and Unlock does one process reach when each of its goroutines has a lock of its own?",
	rows:      goroutines(1, 16, 256, 1000, 4000),
	libraries: contender.Pick(contender.Ours, "redsync", "redislock", "rueidislock", "redisson"),
	headline:  unitRate,
	shown:     []string{unitRate, unitWait + unitP50, unitWait + unitP99, unitCommands, unitServer, unitClient, unitRoutines, unitConns, unitMemory},
	measure: func(ctx context.Context, t trial) (metrics, error) {
		return t.crowds(ctx, t.jobs(true))
	},
}

func goroutines(counts ...int) []row {
	var rows []row
	for _, n := range counts {
		rows = append(rows, row{name: "goroutines=" + strconv.Itoa(n), n: n, large: n >= 1000})
	}
	return rows
}

// readers asks what it is worth that readers do not exclude each other. A library
// without read locks takes part with the lock that it has.
var readers = scenario{
	name:      "readers",
	question:  "How many sections of a millisecond do 16 callers in 2 processes get through, when most of them only read?",
	rows:      shares(.99, .90, .50),
	libraries: append(contender.Pick(contender.Ours, "rueidislock", "redisson"), contender.OfKind(contender.Shared)...),
	us:        "holdfast-rw",
	headline:  unitRate,
	shown:     []string{unitRate, unitReads, unitWrites, "read-" + unitWait + unitP50, "read-" + unitWait + unitP99, unitWait + unitP50, unitWait + unitP99, unitWait + unitMax, unitJain, unitCommands, unitServer},
	measure:   measureCrowds,
}

func shares(reads ...float64) []row {
	var rows []row
	for _, r := range reads {
		rows = append(rows, row{
			name: fmt.Sprintf("procs=2/goroutines=8/reads=%.0f", 100*r), n: 8, procs: 2, hold: time.Millisecond, reads: r,
		})
	}
	return rows
}

// fair asks what a queue costs that serves callers in the order they came, over all
// processes, and whether the price depends on its length. Holdfast's Mutex, which is no
// fair lock, is there to compare with.
var fair = scenario{
	name:      "fair",
	question:  "What does one hand-over of a fair lock cost when 10, 1,000 and 10,000 callers of two processes stand in its queue?",
	rows:      queues(10, 1000, 10_000),
	libraries: append(contender.Pick(contender.Ours), contender.OfKind(contender.InOrder)...),
	us:        "holdfast-fair",
	headline:  unitServer,
	smaller:   true,
	shown:     []string{unitServer, unitCommands, unitRate, unitWait + unitP50, unitWait + unitMax, unitJain, unitJainProc, unitClient, unitMemory},
	stretch:   4,
	measure:   measureCrowds,
}

func queues(lengths ...int) []row {
	var rows []row
	for _, n := range lengths {
		rows = append(rows, row{name: fmt.Sprintf("procs=2/waiters=%d", n), n: n / 2, procs: 2, large: n > 1000})
	}
	return rows
}

// processes asks how a lock goes round among processes.
var processes = scenario{
	name:      "processes",
	question:  "How often, how evenly and at what price does one lock change hands among processes whose goroutines all want it all the time?",
	rows:      fleets(),
	libraries: contender.Pick("message", "least", contender.Ours, "redsync", "redislock", "redislock-1ms", "rueidislock", "r8-pubsub", "redisson"),
	floor:     "message",
	headline:  unitRate,
	shown:     []string{unitRate, unitWait + unitP50, unitWait + unitP99, unitWait + unitMax, unitJain, unitJainProc, unitStarved, unitCommands, unitServer, unitClient, unitRoutines, unitConns, unitMemory},
	measure:   measureCrowds,
}

func fleets() []row {
	var rows []row
	for _, n := range []int{1, 16} {
		for _, procs := range []int{2, 4, 8} {
			rows = append(rows, row{name: fmt.Sprintf("procs=%d/goroutines=%d", procs, n), n: n, procs: procs})
		}
	}
	return rows
}

// handover asks how long the lock has no holder when it goes to another process,
// one that has been waiting for a while: on one machine, where waking up is the longest part of it, and
// where Redis is a network away, and the round trips count.
var handover = scenario{
	name:     "handover",
	question: "How long does it take from Unlock in one process to the return of Lock in the other, which waits for it?",
	rows: []row{
		{name: "procs=2/waiters=1", n: 1, procs: 2, hold: 4 * time.Millisecond},
		{name: "procs=2/waiters=1/rtt=2ms", n: 1, procs: 2, hold: 4 * time.Millisecond, way: time.Millisecond},
	},
	libraries: contender.Pick("message", "grant", "least", contender.Ours, "redsync", "redislock", "redislock-1ms", "rueidislock", "r8-pubsub", "redisson"),
	floor:     "message",
	headline:  unitHandover + unitP50,
	smaller:   true,
	shown:     []string{unitHandover + unitP50, unitHandover + unitP99, unitRate, unitJain, unitCommands, unitServer, unitClient},
	measure:   measureCrowds,
}

// queue asks how evenly many wait, with work under the lock.
var queue = scenario{
	name:      "queue",
	question:  "How long does the unluckiest of 100 callers in 4 processes wait, beside the mean, when each holds the lock for a millisecond?",
	rows:      []row{{name: "procs=4/waiters=100", n: 25, procs: 4, hold: time.Millisecond}},
	libraries: contender.Pick(contender.Ours, "redsync", "redislock", "redislock-1ms", "rueidislock", "r8-pubsub", "redisson"),
	headline:  unitLongest,
	smaller:   true,
	shown:     []string{unitLongest, unitWait + unitMax, unitWait + unitP50, unitWait + unitP99, unitRate, unitJain, unitJainProc, unitStarved, unitHandover + unitP50, unitCommands, unitServer},
	stretch:   4, // several turns of all
	measure:   measureCrowds,
}
