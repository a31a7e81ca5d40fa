package holdfast_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// sides are the members that a Redlock can have beside mutexes.
var sides = map[string]side{"fair": fairSide, "write": writeSide, "read": readSide}

func fairSide(m *holdfast.Manager) holdfast.Locker  { return m.FairMutex(vote) }
func writeSide(m *holdfast.Manager) holdfast.Locker { return m.RWMutex(vote) }
func readSide(m *holdfast.Manager) holdfast.Locker  { return m.RWMutex(vote).RLocker() }

// rivalOf is a side that of excludes.
func rivalOf(name string) side {
	if name == "read" {
		return writeSide
	}
	return sides[name]
}

// clean waits until no server has a key of the lock.
func (all electorate) clean(t *testing.T) {
	t.Helper()
	for _, srv := range all {
		var left []string
		redistest.Eventually(t, patience, "no key but tombstones", func() bool {
			left = left[:0]
			for _, k := range srv.Keys() {
				if !strings.HasPrefix(k, locktest.Tombstones) {
					left = append(left, k)
				}
			}
			return len(left) == 0
		})
	}
}

func TestRedlock_OfEveryKindExcludes(t *testing.T) {
	for _, name := range []string{"fair", "write"} {
		t.Run(name, func(t *testing.T) {
			all := servers(t, 3)
			var clients []holdfast.Locker
			for range 4 {
				clients = append(clients, all.candidateFor(t, sides[name]))
			}
			alone(t, 15, clients...)
			all.clean(t)
		})
	}
}

// Readers share a majority; a writer is alone.
func TestRedlock_ReadersAndWriters(t *testing.T) {
	all := servers(t, 3)
	one, two, writer := all.candidateFor(t, readSide), all.candidateFor(t, readSide), all.candidateFor(t, writeSide)
	r1, r2 := mustLock(t, one), mustLock(t, two)
	_, err := writer.TryLock(t.Context())
	wantErr(t, err, holdfast.ErrNotAcquired, holdfast.ErrUnavailable)
	mustUnlock(t, r1)
	mustUnlock(t, r2)
	w := mustLock(t, writer)
	_, err = one.TryLock(t.Context())
	wantErr(t, err, holdfast.ErrNotAcquired, holdfast.ErrUnavailable)
	mustUnlock(t, w)

	const aWriter = 1000
	var inside atomic.Int32
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, c := range []struct {
		candidate
		weight int32
	}{{one, 1}, {two, 1}, {writer, aWriter}, {all.candidateFor(t, writeSide), aWriter}} {
		wg.Go(func() {
			for range 15 {
				lease, err := c.Lock(ctx)
				if err != nil {
					t.Errorf("Lock: %v", err)
					return
				}
				if n := inside.Add(c.weight); n > aWriter || n < aWriter && c.weight == aWriter {
					t.Errorf("a writer is not alone: %d", n)
				}
				<-time.After(rand.N(section))
				inside.Add(-c.weight)
				if err := lease.Unlock(ctx); err != nil {
					t.Errorf("Unlock: %v", err)
				}
			}
		})
	}
	wg.Wait()
	all.clean(t)
}

// A server of three is dead, comes back empty, and another one restarts: the lock is held
// all the time, and a member that is missing is taken again.
func TestRedlock_OfEveryKindInTrouble(t *testing.T) {
	t.Parallel()
	for name, of := range sides {
		t.Run(name, func(t *testing.T) {
			all := servers(t, 3)
			c, rival := all.candidateFor(t, of, holdfast.WithLease(4*time.Second)), all.candidateFor(t, rivalOf(name))
			refused := func(when string) {
				t.Helper()
				if _, err := rival.TryLock(t.Context()); err == nil {
					t.Fatalf("%s: two have it", when)
				}
				rival.idle(t) // what it was granted is given back
			}
			all[0].Kill()
			lease := mustLock(t, c)
			refused("one is dead")
			if err := lease.Extend(t.Context(), time.Minute); err != nil {
				t.Errorf("Extend: %v", err)
			}
			all[0].Restart()
			all.heldBy(t, 3)
			refused("it is taken again")
			all[1].Restart()
			refused("another has restarted")
			all.heldBy(t, 3)
			if !lease.Valid() {
				t.Errorf("the lease ended: %v", lease.Err())
			}
			got := waits(t, rival)
			rival.waitsAt(t)
			mustUnlock(t, lease)
			mustUnlock(t, got())
			all.clean(t)
		})
	}
}

// Whoever leaves, while it asks or stands in a queue, leaves nothing at any member.
func TestRedlock_OfEveryKindCancelled(t *testing.T) {
	t.Parallel()
	for name, of := range sides {
		t.Run(name, func(t *testing.T) {
			all := servers(t, 3)
			a, b, rival := all.candidateFor(t, of), all.candidateFor(t, of), all.candidateFor(t, rivalOf(name))
			giveUp(t, a, b, b, rival)

			held := mustLock(t, rival)
			ctx, cancel := context.WithCancel(t.Context())
			left := make(chan error, 1)
			go func() { _, err := a.Lock(ctx); left <- err }()
			a.waitsAt(t)
			cancel()
			err := <-left
			wantErr(t, err, holdfast.ErrNotAcquired, holdfast.ErrUnavailable)
			wantErr(t, err, context.Canceled, nil)
			mustUnlock(t, held)
			for _, c := range []candidate{a, b, rival} {
				c.idle(t)
			}
			all.clean(t)
		})
	}
}

// A reader that waits at a member with a writer of no majority is not kept there while
// readers have the others: they would share.
func TestRedlock_ReaderLeavesTheWrongPlace(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := servers(t, 3)
		// The first is to answer first: it is the place to wait then.
		others, clients := []*redistest.Proxy{all[1].Proxy(t), all[2].Proxy(t)}, []*redis.Client{all[0].Client(t)}
		for _, p := range others {
			p.Delay(50*time.Millisecond, 0)
			clients = append(clients, p.Client(t))
		}
		reader := candidateOn(t, clients, readSide, holdfast.WithPollInterval(time.Hour))
		writer, stranger, readers := all.candidateFor(t, writeSide), all.candidateFor(t, writeSide), all.candidateFor(t, readSide)
		mustLock(t, stranger.managers[0].RWMutex(vote))
		held := mustLock(t, writer)
		got := waits(t, reader)
		if at := reader.waitsAt(t); at != 0 {
			t.Fatalf("it waits at %d", at)
		}
		for _, p := range others {
			p.Heal()
		}
		mustUnlock(t, held)
		share := mustLock(t, readers) // of the other two
		mustUnlock(t, got())
		mustUnlock(t, share)
	})
}

// The owner of the write side may take the read side and keep it; the other way round
// is refused at once.
func TestRedlock_DowngradeAndUpgrade(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := servers(t, 3)
		var reads, writes []holdfast.Locker
		for _, srv := range all {
			m := managerOn(t, srv)
			reads, writes = append(reads, readSide(m)), append(writes, writeSide(m))
		}
		read, err := holdfast.NewRedlock(reads...)
		if err != nil {
			t.Fatal(err)
		}
		write, err := holdfast.NewRedlock(writes...)
		if err != nil {
			t.Fatal(err)
		}
		reader, writer := all.candidateFor(t, readSide), all.candidateFor(t, writeSide)
		w := mustLock(t, write)
		r, err := read.Lock(w.Context(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		mustUnlock(t, w)
		if _, err := writer.TryLock(t.Context()); err == nil {
			t.Error("a writer came in beside the reader")
		}
		mustUnlock(t, mustLock(t, reader))
		_, err = write.Lock(r.Context(t.Context()))
		wantErr(t, err, holdfast.ErrWouldDeadlock, holdfast.ErrNotAcquired)
		mustUnlock(t, r)
		all.clean(t)
	})
}

// A majority of members of which some are shared would not exclude anybody.
func TestRedlock_RefusesReadersBesideOthers(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := servers(t, 3)
		c := all.candidate(t)
		a, b, d := c.managers[0], c.managers[1], c.managers[2]
		for name, locks := range map[string][]holdfast.Locker{
			"reader and writers":  {readSide(a), writeSide(b), writeSide(d)},
			"readers and a mutex": {readSide(a), readSide(b), d.Mutex(vote)},
			"both sides":          {writeSide(a), readSide(b), fairSide(d)},
		} {
			_, err := holdfast.NewRedlock(locks...)
			wantErr(t, err, holdfast.ErrInvalidOption, nil)
			if err == nil {
				t.Errorf("%s is taken", name)
			}
		}
		if _, err := holdfast.NewRedlock(a.Mutex(vote), fairSide(b), writeSide(d)); err != nil {
			t.Errorf("all exclusive: %v", err)
		}
		// A lock of another kind stands in the way, at a majority or at one member.
		held := mustLock(t, c)
		_, err := all.candidateFor(t, writeSide).Lock(t.Context())
		wantErr(t, err, holdfast.ErrWrongKind, holdfast.ErrNotAcquired)
		mustUnlock(t, held)
		for _, srv := range all {
			redistest.Eventually(t, patience, "released", func() bool { return len(lastingKeys(srv)) == 0 })
		}
	})
}
