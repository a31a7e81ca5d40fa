package telemetry

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/locktest/several"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// renamed is a lock of some kind on three servers, or the first of them, whose managers have a name mapper.
type renamed struct {
	all      several.Electorate
	managers []*holdfast.Manager
	others   []*holdfast.Manager // of another process
	of       []makerWith         // of the parts
	rivals   []makerWith         // what excludes them
	group    func(...holdfast.Locker) (holdfast.Locker, error)
	names    []string            // that errors may have
	keys     []string            // of the parts
	lost     []string            // what is logged as lost; nil: anything
	reason   holdfast.LostReason // of that; empty: any
	log      *locktest.Lines
	spans    *tracetest.SpanRecorder
}

// makerWith makes a lock with options of its own.
type makerWith func(*holdfast.Manager, string, ...holdfast.LockOption) holdfast.Locker

func mutexWith(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker {
	return m.Mutex(name, opts...)
}

func fairWith(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker {
	return m.FairMutex(name, opts...)
}

func writeWith(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker {
	return m.RWMutex(name, opts...)
}

func readWith(m *holdfast.Manager, name string, opts ...holdfast.LockOption) holdfast.Locker {
	return m.RWMutex(name, opts...).RLocker()
}

// given are the names of the parts.
var given = []string{"n0", "n1", "n2"}

func newRenamed(t *testing.T, of []makerWith, group func(...holdfast.Locker) (holdfast.Locker, error), servers several.Electorate) *renamed {
	t.Helper()
	r := &renamed{all: servers, of: of, rivals: of, group: group, names: slices.Clone(given[:len(of)]), spans: tracetest.NewSpanRecorder()}
	if len(of) > 1 {
		r.names = append(r.names, strings.Join(r.names, "+"))
	}
	log, option := locktest.Logged()
	r.log = log
	mapper := holdfast.WithNameMapper(func(name string) string { return "mapped:" + name })
	for _, srv := range servers {
		r.managers = append(r.managers, locktest.ManagerOn(t, srv, mapper, option,
			holdfast.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.spans)))))
		r.others = append(r.others, locktest.ManagerOn(t, srv, mapper))
	}
	for i := range of {
		r.keys = append(r.keys, "mapped:"+given[i])
	}
	return r
}

// on returns the lock of managers.
func (r *renamed) on(t *testing.T, managers []*holdfast.Manager, opts ...holdfast.LockOption) holdfast.Locker {
	t.Helper()
	return r.made(t, r.of, managers, opts...)
}

// made returns the lock of managers, of such parts.
func (r *renamed) made(t *testing.T, parts []makerWith, managers []*holdfast.Manager, opts ...holdfast.LockOption) holdfast.Locker {
	t.Helper()
	var locks []holdfast.Locker
	for i, of := range parts {
		locks = append(locks, of(managers[i%len(managers)], given[i], opts...))
	}
	if r.group == nil {
		return locks[0]
	}
	l, err := r.group(locks...)
	redistest.Must(t, err)
	return l
}

// rival returns a lease of the other process, which has all parts.
func (r *renamed) rival(t *testing.T) *holdfast.Lease {
	t.Helper()
	lease := locktest.MustLock(t, r.made(t, r.rivals, r.others))
	allHeld(t, r.others, len(r.of))
	return lease
}

// remove deletes the parts.
func (r *renamed) remove(t *testing.T) {
	t.Helper()
	r.each(func(srv *redistest.Server, key string) { srv.Admin().Del(t.Context(), key) })
}

// loses says of how many parts it is logged that they are lost, once each, and of a Redlock that is lost with them, and why.
func (r *renamed) loses(reason holdfast.LostReason, parts int) {
	r.reason, r.lost = reason, slices.Clone(given[:parts])
	if len(r.all) > 1 {
		r.lost = append(r.lost, r.names[len(r.names)-1])
	}
}

// each calls do with each part's server and key.
func (r *renamed) each(do func(srv *redistest.Server, key string)) {
	for i, key := range r.keys {
		do(r.all[i%len(r.all)], key)
	}
}

var firstQuoted = regexp.MustCompile(`"([^"]*)"`)

// wantGiven checks that err is of a sentinel and names the lock as given, and says what it is mapped to only where
// a key is what is wrong.
func (r *renamed) wantGiven(t *testing.T, what string, err, is error) {
	t.Helper()
	says := fmt.Sprint(err)
	first := firstQuoted.FindStringSubmatch(says)
	if !errors.Is(err, is) || first == nil || !slices.Contains(r.names, first[1]) || strings.Contains(says, "mapped:") && !errors.Is(err, holdfast.ErrWrongKind) {
		t.Errorf("%s: %v", what, err)
	}
	if lost := (*holdfast.LostError)(nil); errors.As(err, &lost) && !slices.Contains(r.names, lost.Name) {
		t.Errorf("%s: lost %q", what, lost.Name)
	}
	if not := (*holdfast.ReleaseError)(nil); errors.As(err, &not) && !slices.Contains(r.names, not.Name) {
		t.Errorf("%s: not released %q", what, not.Name)
	}
}

// held waits until all parts are held, as their process knows: a Redlock has its last one later.
func (r *renamed) held(t *testing.T) {
	t.Helper()
	allHeld(t, r.managers, len(r.of))
}

func allHeld(t *testing.T, managers []*holdfast.Manager, parts int) {
	t.Helper()
	redistest.Eventually(t, locktest.Patience, "all parts are held", func() bool {
		return total(managers, func(s holdfast.Stats) int { return s.Held }) == parts
	})
}

// taken returns a lease, all of it, of which no request was sent twice: a copy that comes late takes a lock again that
// was deleted, for the same owner.
func (r *renamed) taken(t *testing.T, lock holdfast.Locker) *holdfast.Lease {
	t.Helper()
	troubles := func() int { return total(r.managers, func(s holdfast.Stats) int { return int(s.Troubles) }) }
	for end := time.Now().Add(4 * locktest.Patience); time.Now().Before(end); {
		before := troubles()
		lease := locktest.MustLock(t, lock)
		r.held(t)
		if troubles() == before {
			return lease
		}
		locktest.MustUnlock(t, lease)
	}
	t.Fatal("each attempt needed more than one request")
	return nil
}

// total adds up a figure of managers.
func total(managers []*holdfast.Manager, of func(holdfast.Stats) int) (n int) {
	for _, m := range managers {
		n += of(m.Stats())
	}
	return n
}

// told waits for a line of the log about each part.
func (r *renamed) told(t *testing.T, line string) {
	t.Helper()
	for i := range r.of {
		redistest.Eventually(t, locktest.Patience, line, func() bool { return len(r.log.With(line+" lock="+given[i]+" ")) == 1 })
	}
}

// wantGivenElsewhere checks the spans and the log.
func (r *renamed) wantGivenElsewhere(t *testing.T, ofAKey bool) {
	t.Helper()
	redistest.Eventually(t, locktest.Patience, "the log has each loss", func() bool { return len(r.log.With("lease lost")) >= len(r.lost) }) // of a Redlock a minority may come late
	for _, m := range r.managers {
		_ = m.Close(context.Background())
	}
	for _, s := range r.spans.Ended() {
		for k, v := range attributes(s) {
			if k == "holdfast.name" && !slices.Contains(r.names, v.AsString()) || strings.Contains(v.String(), "mapped:") {
				t.Errorf("span %s: %s is %s", s.Name(), k, v.String())
			}
		}
		if strings.Contains(s.Status().Description, "mapped:") && !ofAKey {
			t.Errorf("span %s: %s", s.Name(), s.Status().Description)
		}
	}
	if got := r.log.With("mapped:"); len(got) > 0 {
		t.Errorf("%q", got)
	}
	for _, name := range r.lost {
		line := "WARN holdfast: lease lost lock=" + name + " reason=" + string(r.reason)
		if got := r.log.With(line); len(got) != 1 {
			t.Errorf("%q, want one %q", got, line)
		}
	}
	if got := r.log.With("lease lost"); r.lost != nil && len(got) != len(r.lost) {
		t.Errorf("%q, want %d lines", got, len(r.lost))
	}
}

// So does the log, when the maximum hold time of the second caller's lease is over.
func TestLogs_TwoNamesOfOneLock(t *testing.T) {
	t.Parallel()
	log, option := locktest.Logged()
	m := locktest.ManagerOn(t, redistest.Start(t), option, holdfast.WithNameMapper(strings.ToLower), holdfast.WithLease(3*time.Second), holdfast.WithMaxHold(3*time.Second))
	first := locktest.MustLock(t, m.Mutex("lock"))
	second := locktest.Waits(t, m.Mutex("LOCK"))
	redistest.Eventually(t, locktest.Patience, "it waits", func() bool { return m.Stats().Waiting == 1 })
	locktest.MustUnlock(t, first)
	lease := second()
	<-lease.Done()
	redistest.Eventually(t, locktest.Patience, "it is told", func() bool { return len(log.With("maximum hold time reached lock=")) > 0 })
	if got := log.With("maximum hold time reached lock=LOCK"); len(got) != 1 {
		t.Errorf("%q", log.With("maximum hold time reached"))
	}
	locktest.WantErr(t, locktest.Unlock(lease), holdfast.ErrMaxHold, nil)
}

// What is wrong with a name that the mapper has made is said of that, behind the name as given.
func TestErrors_OfAMappedName(t *testing.T) {
	m := locktest.ManagerOn(t, redistest.Start(t), holdfast.WithNameMapper(func(name string) string { return "mapped:" + name }))
	_, looked := m.Inspect(t.Context(), "a{b")
	_, forced := m.ForceUnlock(t.Context(), "a{b")
	_, locked := m.Mutex("a{b").TryLock(t.Context())
	for call, err := range map[string]error{"Inspect": looked, "ForceUnlock": forced, "TryLock": locked} {
		if !errors.Is(err, holdfast.ErrInvalidName) || !strings.Contains(err.Error(), `"a{b": mapped to "mapped:a{b"`) {
			t.Errorf("%s: %v", call, err)
		}
	}
	long := strings.Repeat("n", 1<<10)
	_, before := m.Inspect(t.Context(), long+"n")
	_, after := m.ForceUnlock(t.Context(), long)
	for n, err := range map[string]error{"…: the name has 1025 bytes": before, `…: mapped to "mapped:nn`: after, "…: the name has 1031 bytes": after} {
		if !errors.Is(err, holdfast.ErrInvalidName) || !strings.Contains(err.Error(), n) {
			t.Errorf("%v, and not %q", err, n)
		}
	}
	if info := locktest.Inspected(t, m, "n"); info.Name != "n" {
		t.Errorf("Inspect of %q", info.Name)
	}
}

// Several locks as one name each part by the name that it was given there.
func TestErrors_TwoNamesOfParts(t *testing.T) {
	for kind, group := range map[string]func(...holdfast.Locker) (holdfast.Locker, error){
		"multi":   func(locks ...holdfast.Locker) (holdfast.Locker, error) { return holdfast.NewMulti(locks...) },
		"redlock": func(locks ...holdfast.Locker) (holdfast.Locker, error) { return holdfast.NewRedlock(locks...) },
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			log, option := locktest.Logged()
			var known []*holdfast.Lease
			var locks []holdfast.Locker
			all := several.Servers(t, 3)
			for i, srv := range all {
				m := locktest.ManagerOn(t, srv, option, holdfast.WithNameMapper(strings.ToLower))
				known = append(known, locktest.MustLock(t, m.RWMutex(given[i]).RLocker())) // the lock stays known by this name
				locks = append(locks, m.RWMutex(strings.ToUpper(given[i]), holdfast.WithFixedLease(10*time.Second)).RLocker())
			}
			l, err := group(locks...)
			redistest.Must(t, err)
			lease := locktest.MustLock(t, l)
			for i, srv := range all {
				redistest.Eventually(t, locktest.Patience, "it is held twice", func() bool { return srv.Admin().HLen(t.Context(), given[i]).Val() == 3 })
				srv.Admin().Del(t.Context(), given[i])
			}
			err = locktest.UntilAnswered(func() error { return lease.Extend(t.Context(), time.Minute) })
			if lost := (*holdfast.LostError)(nil); !errors.As(err, &lost) || lost.Name != strings.ToUpper(lost.Name) {
				t.Errorf("Extend: %v", err)
			}
			err = locktest.Unlock(lease)
			if lost := (*holdfast.LostError)(nil); !errors.As(err, &lost) || lost.Name != strings.ToUpper(lost.Name) {
				t.Errorf("Unlock: %v", err)
			}
			for i, l := range known {
				redistest.Eventually(t, locktest.Patience, "it is told", func() bool { return len(log.With("lease lost lock="+strings.ToUpper(given[i])+" ")) == 1 })
				locktest.WantErr(t, locktest.Unlock(l), holdfast.ErrLeaseLost, nil)
			}
		})
	}
}
