package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// measureCrowds has the callers of one or several processes use locks for a window.
func measureCrowds(ctx context.Context, t trial) (metrics, error) {
	return t.crowds(ctx, t.jobs(false))
}

// jobs are those of the row: the same for each of its processes.
func (t trial) jobs(distinct bool) []job {
	var jobs []job
	for i := range max(t.procs, 1) {
		jobs = append(jobs, job{
			Process: int64(i) + 1, Callers: t.n, First: i * t.n, Distinct: distinct, Hold: t.hold, Reads: t.reads,
		})
	}
	return jobs
}

// member is one process of a fleet; a crowd in this process is one too.
type member interface {
	start() error
	sample() (sample, error)
	end() (*outcome, error)
	close() error
}

// local is a crowd in this process.
type local struct{ *crowd }

func (l local) start() error            { l.crowd.start(); return nil }
func (l local) sample() (sample, error) { return l.crowd.sample(), nil }
func (l local) end() (*outcome, error)  { return l.crowd.end(), nil }
func (l local) close() error            { l.crowd.close(); return nil }

// crowds runs one process per job, or a single job of a Go library in this process if
// the row does not ask for processes.
func (t trial) crowds(ctx context.Context, jobs []job) (m metrics, err error) {
	if err := t.server.reset(ctx); err != nil {
		return nil, err
	}
	f := &fleet{trial: t, jobs: jobs}
	defer func() { err = errors.Join(err, f.close()) }()
	if err := f.open(); err != nil {
		return nil, err
	}
	return f.measure(ctx)
}

// warmPair is what the warm-up of a virtual machine takes of the window, per pair of
// Lock and Unlock: a couple of thousand make it fast.
const warmPair = 350 * time.Microsecond

type fleet struct {
	trial
	jobs    []job
	page    *page
	members []member
}

func (f *fleet) open() (err error) {
	remote := f.procs > 0 || f.library.open == nil
	if f.page = newPage(); remote {
		if f.page, err = createPage(); err != nil {
			return err
		}
	}
	for i := range f.jobs {
		j := &f.jobs[i]
		j.Library, j.Kind, j.Address, j.Page = f.library.name, f.library.kind, f.server.address, f.page.file
		j.Lease = cmp.Or(j.Lease, lease)
		j.Warm = max(20, int(f.window/warmPair))
		if !remote {
			c, err := openCrowd(*j, f.page)
			if err != nil {
				return err
			}
			f.members = append(f.members, local{c})
			continue
		}
		w, err := f.server.hire(*j)
		if err != nil {
			return err
		}
		f.members = append(f.members, w)
	}
	for _, m := range f.members {
		if w, ok := m.(*worker); ok {
			if err := w.ready(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *fleet) close() error {
	var errs []error
	for _, m := range f.members {
		errs = append(errs, m.close())
	}
	if f.page != nil {
		errs = append(errs, f.page.close())
		if f.page.file != "" {
			errs = append(errs, os.Remove(f.page.file))
		}
	}
	return errors.Join(errs...)
}

// measure leads the members through the phases. Rates are taken from the measurement
// only. Commands and CPU time are counted from before the first caller starts until
// after the last has ended, and divided by all that was done meanwhile: in between
// there is no moment at which both counts stand still.
func (f *fleet) measure(ctx context.Context) (metrics, error) {
	u, err := f.usage(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range f.members {
		if err := m.start(); err != nil {
			return nil, err
		}
	}
	callers := int64(0)
	for _, j := range f.jobs {
		callers += int64(j.Callers)
	}
	// A slow library with many goroutines works in waves: all lock, then all unlock. A
	// window must not be shorter than a few of them, nor end before anything was done.
	progress := func(want int64) func() bool {
		if !f.jobs[0].Distinct {
			want = 1
		}
		from := f.page.words[wordProgress].Load()
		return func() bool { return f.page.words[wordProgress].Load()-from >= want }
	}
	wait(f.window/5, progress(callers))
	begun := time.Now()
	f.page.words[wordPhase].Store(measuring)
	wait(f.window, progress(2*callers))
	var taken sample
	for _, m := range f.members {
		s, err := m.sample()
		if err != nil {
			return nil, err
		}
		taken.Goroutines += s.Goroutines
		taken.Memory += s.Memory
	}
	conns, err := f.server.clients(ctx)
	if err != nil {
		return nil, err
	}
	f.page.words[wordPhase].Store(stopped)
	v := &verdict{elapsed: time.Since(begun), callers: callers, taken: taken, conns: conns}
	for i, m := range f.members {
		o, err := m.end()
		if err != nil {
			return nil, err
		}
		v.add(f.jobs[i], o)
	}
	v.pairs, v.counted = f.page.words[wordProgress].Load(), f.page.words[wordCount].Load()
	if v.sent, err = u.soFar(ctx); err != nil {
		return nil, err
	}
	v.sent.commands += int64(f.library.unseen * float64(v.pairs))
	return v.metrics()
}

// wait waits for d, and then for done, which has patience for two seconds.
func wait(d time.Duration, done func() bool) {
	time.Sleep(d)
	within(2*time.Second, done)
}

// verdict is what all members found together.
type verdict struct {
	elapsed         time.Duration
	callers         int64
	pairs           int64 // in all phases
	counted, writes int64 // passes that the section counted, and that were made
	overlaps        int64 // writers that a reader saw
	waits, reads    histogram
	handovers       histogram
	unfinished      time.Duration // the longest wait that the end cut off
	unwritten       time.Duration // the same of those who do not only read
	grants, each    []int64       // of each caller, and of each process
	cpu             time.Duration
	taken           sample
	conns           int64
	sent            tally
	faults          []string
}

func (v *verdict) add(j job, o *outcome) {
	sum := int64(0)
	for _, n := range o.Grants {
		sum += n
	}
	v.grants, v.each = append(v.grants, o.Grants...), append(v.each, sum)
	v.waits.add(o.Waits)
	v.reads.add(o.Reads)
	v.handovers.add(o.Handovers)
	v.writes += o.Writes
	v.overlaps += o.Overlaps
	v.unfinished = max(v.unfinished, o.Unfinished)
	if j.Reads < 1 {
		v.unwritten = max(v.unwritten, o.Unfinished)
	}
	v.cpu += o.CPU
	if o.Error != "" {
		v.faults = append(v.faults, o.Error)
	}
}

// violation is an error of the worst kind: the lock does not exclude.
type violation struct{ n int64 }

func (v violation) Error() string {
	return "two held the lock at the same time: violations " + strconv.FormatInt(v.n, 10)
}

func (v *verdict) metrics() (metrics, error) {
	if n := v.writes - v.counted + v.overlaps; n != 0 {
		return nil, violation{n}
	}
	if len(v.faults) > 0 {
		return nil, fmt.Errorf("a caller gave up: %s", strings.Join(v.faults, "; "))
	}
	if v.pairs == 0 {
		return nil, errors.New("nobody got the lock")
	}
	seconds := v.elapsed.Seconds()
	grants := float64(v.waits.count() + v.reads.count())
	starved := 0
	for _, n := range v.grants {
		if n == 0 {
			starved++
		}
	}
	longest := max(v.waits.max(), v.reads.max(), v.unfinished)
	m := metrics{
		unitRate:           grants / seconds,
		unitWait + unitMax: milliseconds(longest),
		unitJain:           jain(v.grants),
		unitStarved:        float64(starved),
		unitClient:         microseconds(v.cpu) / float64(v.pairs),
		unitRoutines:       float64(v.taken.Goroutines),
		unitMemory:         float64(v.taken.Memory) / (1 << 20),
		unitConns:          float64(v.conns),
	}
	if v.writes > 0 {
		m[unitOverlaps] = 0 // or it would not have come so far
	}
	if len(v.each) > 1 {
		m[unitJainProc] = jain(v.each)
	}
	quantiles(m, unitWait, &v.waits)
	quantiles(m, "read-"+unitWait, &v.reads)
	quantiles(m, unitHandover, &v.handovers)
	// What each would wait if all waited the same; a mean over grants alone would leave
	// out those who never had one. A window of less than two of these says nothing.
	if mean := float64(v.callers) * seconds / grants; 2*mean < seconds {
		m[unitLongest] = longest.Seconds() / mean
	}
	if v.reads.count() > 0 {
		m[unitReads] = float64(v.reads.count()) / seconds
		m[unitWrites] = float64(v.waits.count()) / seconds
		m[unitWriteMax] = milliseconds(max(v.waits.max(), v.unwritten))
	}
	v.sent.perPair(m, v.pairs)
	return m, nil
}

func quantiles(m metrics, prefix string, h *histogram) {
	if h.count() > 0 {
		m[prefix+unitP50], m[prefix+unitP99] = microseconds(h.quantile(.5)), microseconds(h.quantile(.99))
	}
}
