// Package load puts locks under load and watches: crowds of callers in this process and
// in others, which it leads through the phases of a measurement, on a Redis server of
// its own. Verdict and Still are what it found.
package load

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/internal/contender"
)

// Fleet is the processes of one measurement.
type Fleet struct {
	Server  *Server
	Library contender.Library
	Window  time.Duration // how long to watch
	// Jobs are one for each process, or a single one of a library in Go for this process,
	// unless Apart.
	Jobs  []Job
	Apart bool
	Way   time.Duration // how far the server is from the processes: what a message takes one way

	relay   *Relay // nil: next to them
	page    *page
	members []member
}

// member is one process of a fleet; a crowd in this process is one too.
type member interface {
	start() error
	sample() (Sample, error)
	end() (*outcome, error)
	close() error
}

// local is a crowd in this process.
type local struct{ *crowd }

func (l local) start() error            { l.crowd.start(); return nil }
func (l local) sample() (Sample, error) { return l.crowd.sample(), nil }
func (l local) end() (*outcome, error)  { return l.crowd.end(), nil }
func (l local) close() error            { l.crowd.close(); return nil }

// warmPair is what the warm-up of a virtual machine takes of the window, per pair of
// Lock and Unlock: a couple of thousand make it fast.
const warmPair = 350 * time.Microsecond

func (f *Fleet) open(ctx context.Context) (err error) {
	if err := f.Server.Reset(ctx); err != nil {
		return err
	}
	remote := f.Apart || f.Library.Open == nil
	if f.page = newPage(); remote {
		if f.page, err = createPage(); err != nil {
			return err
		}
	}
	address := f.Server.address
	if f.Way > 0 {
		if f.relay, err = StartRelay(address, f.Way); err != nil {
			return err
		}
		address = f.relay.Address()
	}
	for i := range f.Jobs {
		j := &f.Jobs[i]
		j.Library, j.Kind, j.Address, j.Page = f.Library.Name, f.Library.Kind, address, f.page.file
		j.Lease = cmp.Or(j.Lease, holdfast.DefaultLease)
		j.Warm = max(20, int(f.Window/warmPair))
		if !remote {
			c, err := openCrowd(*j, f.page)
			if err != nil {
				return err
			}
			f.members = append(f.members, local{c})
			continue
		}
		w, err := f.Server.hire(*j, f.Window)
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

func (f *Fleet) close() error {
	var errs []error
	for _, m := range f.members {
		errs = append(errs, m.close())
	}
	if f.relay != nil {
		errs = append(errs, f.relay.Close())
	}
	if f.page != nil {
		errs = append(errs, f.page.close())
		if f.page.file != "" {
			errs = append(errs, os.Remove(f.page.file))
		}
	}
	return errors.Join(errs...)
}

// Measure has all callers use their locks for the window.
func (f *Fleet) Measure(ctx context.Context) (v *Verdict, err error) {
	defer func() { err = errors.Join(err, f.close()) }()
	if err := f.open(ctx); err != nil {
		return nil, err
	}
	return f.measure(ctx)
}

// measure leads the members through the phases. Rates, and what the server is asked to do, are
// taken from the measurement only: what a thousand callers send to begin with, and to leave, is no
// cost of the hand-offs in between. The two counts at its edges are not of the same moment, but a
// request apart. The clients' CPU time is that of all phases.
func (f *Fleet) measure(ctx context.Context) (*Verdict, error) {
	for _, m := range f.members {
		if err := m.start(); err != nil {
			return nil, err
		}
	}
	callers := int64(0)
	for _, j := range f.Jobs {
		callers += int64(j.Callers)
	}
	// A slow library with many goroutines works in waves: all lock, then all unlock. A
	// window must not be shorter than a few of them, nor end before anything was done.
	progress := func(want int64) func() bool {
		if !f.Jobs[0].Distinct {
			want = 1
		}
		from := f.progress()
		return func() bool { return f.progress()-from >= want }
	}
	wait(f.Window/5, progress(callers))
	u, err := f.usage(ctx)
	if err != nil {
		return nil, err
	}
	before, begun := f.progress(), time.Now()
	f.page.words[wordPhase].Store(measuring)
	wait(f.Window, progress(2*callers))
	sent, err := u.SoFar(ctx)
	if err != nil {
		return nil, err
	}
	during := f.progress() - before
	var taken Sample
	for _, m := range f.members {
		s, err := m.sample()
		if err != nil {
			return nil, err
		}
		taken.Goroutines += s.Goroutines
		taken.Memory += s.Memory
	}
	conns, err := f.Server.clients(ctx)
	if err != nil {
		return nil, err
	}
	f.page.words[wordPhase].Store(stopped)
	v := &Verdict{Elapsed: time.Since(begun), Callers: callers, Taken: taken, Conns: conns, Sent: sent, During: during}
	for _, m := range f.members {
		o, err := m.end()
		if err != nil {
			return nil, err
		}
		v.add(o)
	}
	v.Pairs, v.counted = f.progress(), f.page.words[wordCount].Load()
	v.Sent.Commands += int64(f.Library.Unseen * float64(during))
	return v, v.fault()
}

// progress is how many pairs of Lock and Unlock there were.
func (f *Fleet) progress() int64 { return f.page.words[wordProgress].Load() }

func (f *Fleet) usage(ctx context.Context) (*Usage, error) {
	return f.Server.Usage(ctx, f.Library.Direct)
}

// wait waits for d, and then for done, which has patience for two seconds.
func wait(d time.Duration, done func() bool) {
	time.Sleep(d)
	within(2*time.Second, done)
}

// within waits until done, but not longer than limit, and returns whether it is.
func within(limit time.Duration, done func() bool) bool {
	for end := time.Now().Add(limit); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
