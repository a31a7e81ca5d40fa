package topology

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// AC-84. The master is killed while a lock is held, in every other round before the
// replicas have heard of it. The holder either keeps the lock or is told; somebody else
// gets it or not accordingly. What Redis loses cannot be asserted, so overlaps are
// reported.
func TestSentinel_KilledMaster(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t, 2)
	holders, others := manager(t, s.Client(t)), manager(t, s.Client(t))
	var kept, lost, overlaps int
	var longest, behind, overlap time.Duration
	for round := range *rounds {
		lock := fmt.Sprint(name, ":", round)
		old := s.Master()
		replicated := round%2 == 0
		if !replicated {
			isolate(t, s, old)
		}
		held := mustLock(t, holders.Mutex(lock))
		if replicated {
			acknowledged(t, old, 2)
		}
		old.Kill()
		killed := time.Now()
		for _, n := range s.Nodes() {
			n.Resume()
		}

		// The service is back when another lock can be had.
		s.AwaitNewMaster(old)
		replaced := time.Now()
		mustUnlock(t, mustLock(t, others.Mutex(lock+":probe")))
		behind = max(behind, time.Since(replaced))
		longest = max(longest, time.Since(killed))

		got, err := others.Mutex(lock).TryLock(within(t))
		switch {
		case errors.Is(err, holdfast.ErrNotAcquired):
			kept++
			renewals := holders.Stats().Renewals
			eventually(t, "the holder renews", func() bool { return holders.Stats().Renewals > renewals })
			if err := held.Err(); err != nil {
				t.Errorf("round %d: kept by Redis, and the holder was told %v", round, err)
			}
			mustUnlock(t, held)
		case err != nil:
			t.Fatalf("round %d: %v", round, err)
		default:
			if replicated && time.Since(killed) < lease/2 { // the sentinels were in time for a renewal
				t.Errorf("round %d: both replicas had the lock, and it was lost", round)
			}
			lost++
			if begun := time.Now(); held.Valid() {
				overlaps++
				awaitLoss(t, held)
				overlap = max(overlap, time.Since(begun))
			} else {
				awaitLoss(t, held)
			}
			mustUnlock(t, got)
		}
		old.Restart()
		s.AwaitHealthy()
	}
	t.Logf("sentinel, %d masters killed: lock kept %d times, lost %d times, %d overlaps of up to %v, longest unavailability %v, of which after the new master was ready %v",
		*rounds, kept, lost, overlaps, overlap.Round(time.Millisecond), longest.Round(time.Millisecond), behind.Round(time.Millisecond))
}

// isolate keeps the replicas from hearing anything more of their master: they stand
// still, so its links to them, once cut, stay cut.
func isolate(t *testing.T, s *redistest.Sentinel, master *redistest.Server) {
	t.Helper()
	for _, n := range s.Nodes() {
		if n != master {
			n.Pause()
		}
	}
	if err := master.Admin().ClientKillByFilter(context.Background(), "TYPE", "replica").Err(); err != nil {
		t.Fatal(err)
	}
}

// awaitLoss fails unless the holder is told of its loss by its deadline.
func awaitLoss(t *testing.T, held *holdfast.Lease) {
	t.Helper()
	select {
	case <-held.Done():
	case <-time.After(lease + time.Second):
		t.Fatal("the holder was not told")
	}
	var why *holdfast.LostError
	if !errors.As(held.Err(), &why) {
		t.Errorf("the holder was told %v", held.Err())
	}
}

// A fail-over on request, under load, again and again: callers see no error.
func TestSentinel_FailoverUnderLoad(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t, 1)
	openly := holdfast.WithHandoffSlice(0) // every pair goes to Redis
	ms := []*holdfast.Manager{manager(t, s.Client(t), openly), manager(t, s.Client(t), openly)}
	l := startLoad(name, ms, 4, 0)
	for range 2 {
		s.Failover()
		s.AwaitHealthy()
		before := l.pairs.Load()
		eventually(t, "the load goes on", func() bool { return l.pairs.Load() > before })
	}
	l.finish(t, "2 sentinel fail-overs") // overlaps are reported: data may be lost
	l.wantNoErrors(t)
	for _, m := range ms {
		mustUnlock(t, mustLock(t, m.Mutex(name)))
	}
}

// A waiter that is parked when the master is replaced is woken by the new one, or asks
// by itself.
func TestSentinel_WaiterSurvivesTheFailover(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t, 1)
	holders, waiters := manager(t, s.Client(t)), manager(t, s.Client(t))
	held := mustLock(t, holders.Mutex(name))
	acknowledged(t, s.Master(), 1)
	got := make(chan *holdfast.Lease, 1)
	go func() { got <- mustLock(t, waiters.Mutex(name)) }()
	eventually(t, "the waiter is subscribed", func() bool { return waiters.Stats().Subscriptions == 1 })
	s.Failover()
	if err := held.Unlock(within(t)); err != nil && !errors.Is(err, holdfast.ErrUnavailable) {
		t.Fatalf("Unlock: %v", err)
	}
	mustUnlock(t, <-got)
}

// AC-88. A master that must not write without a replica: no lock, no key, and the error
// says so.
func TestReplicas_MinReplicasToWrite(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.WithArgs("--min-replicas-to-write", "1"))
	m := manager(t, srv.Client(t))
	if _, err := m.Mutex(name).TryLock(within(t)); !errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrNotAcquired) {
		t.Errorf("TryLock: %v, want ErrUnavailable", err)
	}
	got := make(chan *holdfast.Lease, 1)
	go func() { got <- mustLock(t, m.Mutex(name)) }()
	troubles := m.Stats().Troubles
	eventually(t, "Lock is refused", func() bool { return m.Stats().Troubles > troubles+2 })
	srv.RequireNoKeys(t)
	srv.Admin().ConfigSet(context.Background(), "min-replicas-to-write", "0")
	mustUnlock(t, <-got)
}
