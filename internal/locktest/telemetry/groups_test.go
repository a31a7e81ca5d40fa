package telemetry

import (
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/locktest/several"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// The spans of the members are children of the span of the whole.
func TestMulti_Spans(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		recorder, spans := recorded()
		m := locktest.ManagerOn(t, redistest.Start(t), spans)
		locktest.MustUnlock(t, locktest.MustLock(t, several.Multi(t, m.Mutex("a"), m.RWMutex("b"))))
		wantFamily(t, recorder.Ended(), "multi", "a+b", 2)
	})
}

// One acquire and one release of the whole, with those of the members below them; a dead
// member that is asked again and again while the lock is held adds nothing.
func TestRedlock_SpansAndMetrics(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := several.Servers(t, 3)
		recorder, spans := recorded()
		reader, metrics := metered()
		c := all.Candidate(t, spans, metrics)
		lease := locktest.MustLock(t, c)
		all.Joined(t, lease)
		locktest.MustUnlock(t, lease)
		redistest.Eventually(t, locktest.Patience, "four spans of each", func() bool { return len(recorder.Ended()) == 8 })
		wantFamily(t, recorder.Ended(), "redlock", several.Vote, 3)
		wantSeries(t, reader, "holdfast.acquire.duration", map[string]float64{"acquired redlock fast": 1}) // and none of a member: no caller has locked one
		wantSeries(t, reader, "holdfast.release.duration", map[string]float64{"released redlock": 1})

		recorder.Reset()
		all[0].Kill()
		lease = locktest.MustLock(t, c)
		troubles := c.Managers[0].Stats().Troubles
		redistest.Eventually(t, locktest.Patience, "the dead one is asked again", func() bool { return c.Managers[0].Stats().Troubles >= troubles+2 })
		acquires := 0
		for _, s := range recorder.Ended() {
			if s.Name() == "lock.acquire" {
				acquires++
			}
		}
		redistest.Want(t, acquires, 4, "%d spans of acquires for a lock of three members")
		locktest.MustUnlock(t, lease)
		other := all.Candidate(t)
		held := locktest.MustLock(t, other)
		_, err := c.TryLock(t.Context())
		locktest.WantErr(t, err, holdfast.ErrNotAcquired, nil)
		if got := series(t, reader, "holdfast.acquire.duration"); got["acquired redlock fast"]+got["acquired redlock wait"] != 2 || got["not_acquired redlock"] != 1 {
			t.Errorf("%v", got)
		}
		locktest.MustUnlock(t, held)
	})
}

// wantFamily fails unless there is one span of the whole for Lock and one for Unlock, and
// n children of each.
func wantFamily(t *testing.T, spans []sdktrace.ReadOnlySpan, kind, name string, n int) {
	t.Helper()
	parents := map[string]trace.SpanID{}
	for _, s := range spans {
		if a := attributes(s); a["holdfast.type"].AsString() == kind {
			if _, twice := parents[s.Name()]; twice || a["holdfast.name"].AsString() != name || s.Name() == "lock.acquire" && a["holdfast.wait_mode"].AsString() != "fast" {
				t.Errorf("%s: %v", s.Name(), s.Attributes())
			}
			parents[s.Name()] = s.SpanContext().SpanID()
		}
	}
	if len(parents) != 2 {
		t.Fatalf("spans of the whole: %v", parents)
	}
	children := map[string]int{}
	for _, s := range spans {
		if attributes(s)["holdfast.type"].AsString() == kind {
			continue
		}
		children[s.Name()]++
		if s.Parent().SpanID() != parents[s.Name()] {
			t.Errorf("%s of %s is not a child of the whole", s.Name(), attributes(s)["holdfast.name"].AsString())
		}
	}
	if children["lock.acquire"] != n || children["lock.release"] != n {
		t.Errorf("%v children, want %d each", children, n)
	}
}
