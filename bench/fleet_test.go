package bench

import (
	"context"
	"errors"
	"testing"
	"time"
)

// unlocked is no lock at all. Workers know it because they run this main function too.
const unlocked = "unlocked"

func init() {
	libraries = append(libraries, library{name: unlocked, open: func(string, time.Duration) (contender, error) {
		return noLock{}, nil
	}})
}

type noLock struct{}

func (noLock) Lock(context.Context, string) (func(context.Context) error, error) {
	return func(context.Context) error { return nil }, nil
}

func (noLock) Close() {}

// An overlap must not go unseen, be it between goroutines, processes, or a writer and a
// reader.
func TestCrowdsTellOverlap(t *testing.T) {
	for name, r := range map[string]row{
		"goroutines":           {n: 2},
		"processes":            {n: 1, procs: 2},
		"processes, with work": {n: 1, procs: 2, hold: time.Millisecond},
		"readers":              {n: 4, reads: .9, hold: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := measureCrowds(t.Context(), trial{testServer, pick(unlocked)[0], r, time.Second})
			if v := (violation{}); !errors.As(err, &v) {
				t.Errorf("callers without a lock: %v", err)
			}
		})
	}
}

// A single writer loses no increment, so it is its readers that tell.
func TestReadersTellAWriter(t *testing.T) {
	r := row{n: 2, procs: 2, hold: time.Millisecond}
	_, err := writer.measure(t.Context(), trial{testServer, pick(unlocked)[0], r, time.Second})
	if v := (violation{}); !errors.As(err, &v) {
		t.Errorf("a writer among readers without a lock: %v", err)
	}
}

// What several processes do is added up, and nothing of it is lost.
func TestFleetCounts(t *testing.T) {
	for _, name := range []string{ours, "redisson"} {
		t.Run(name, func(t *testing.T) {
			l := pick(name)[0]
			runnable(t, l)
			m, err := measureCrowds(t.Context(), trial{testServer, l, row{n: 2, procs: 2, hold: time.Millisecond}, time.Second})
			if err != nil {
				t.Fatal(err)
			}
			// A millisecond under the lock bounds the rate; two processes share it. How slow a
			// machine is nobody knows.
			if rate := m[unitRate]; rate <= 0 || rate > 1000 {
				t.Errorf("%v pairs/s", rate)
			}
			for _, unit := range []string{unitWait + unitP50, unitHandover + unitP50, unitCommands, unitServer, unitClient, unitConns, unitMemory, unitJainProc} {
				if m[unit] <= 0 {
					t.Errorf("%s is %v", unit, m[unit])
				}
			}
		})
	}
}

// A worker that cannot do its job says why.
func TestFleetTellsWhyAWorkerFailed(t *testing.T) {
	dead := &Server{address: "127.0.0.1:1", admin: testServer.admin}
	_, err := measureCrowds(t.Context(), trial{dead, pick("redislock")[0], row{n: 1, procs: 2}, 100 * time.Millisecond})
	if err == nil {
		t.Fatal("a fleet without a server measured something")
	}
	t.Log(err)
}
