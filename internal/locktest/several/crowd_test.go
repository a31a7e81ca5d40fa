package several

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// outages are what can become of a member.
var outages = map[string]struct {
	down, up func(*redistest.Server, *redistest.Proxy)
}{
	"stopped":  {func(srv *redistest.Server, _ *redistest.Proxy) { srv.Pause() }, func(srv *redistest.Server, _ *redistest.Proxy) { srv.Resume() }},
	"killed":   {func(srv *redistest.Server, _ *redistest.Proxy) { srv.Kill() }, func(srv *redistest.Server, _ *redistest.Proxy) { srv.Restart() }},
	"silent":   {func(_ *redistest.Server, p *redistest.Proxy) { p.BlackHole(true) }, heal},
	"refusing": {func(_ *redistest.Server, p *redistest.Proxy) { p.Refuse(true); p.Cut() }, heal},
	"slow":     {func(_ *redistest.Server, p *redistest.Proxy) { p.Delay(100*time.Millisecond, 0) }, heal},
}

func heal(_ *redistest.Server, p *redistest.Proxy) { p.Heal() }

// more is how many grants each caller has to get, of a crowd that gets on.
const more = 10

// limit is how long that may take. Callers that members split are granted one a second at most, all of them together. Those who
// get on are granted hundreds, so that a machine may be slow, and may stand still for most of that time.
func limit(callers int) time.Duration { return time.Duration(more*callers) * time.Second * 9 / 10 }

// crowd is callers who lock and unlock all the time, until the test ends.
type crowd struct {
	grants []atomic.Int64 // by caller
}

// crowds bounds how many there are at a time on real servers: one keeps a machine busy, so that many beside each other would be
// as slow as callers that members split.
var crowds = make(chan struct{}, 2)

// gather starts a crowd, each caller with a lock of its own; a lock of weight 0 may be held beside others
// of that weight.
func gather(t *testing.T, locks []holdfast.Locker, alone func(i int) bool) *crowd {
	const one = 1000
	if !testing.Short() {
		crowds <- struct{}{}
		t.Cleanup(func() { <-crowds })
	}
	c := &crowd{grants: make([]atomic.Int64, len(locks))}
	ctx, cancel := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	t.Cleanup(func() { cancel(); callers.Wait() })
	var inside atomic.Int32
	for i, l := range locks {
		weight := int32(1)
		if alone(i) {
			weight = one
		}
		callers.Go(func() {
			for ctx.Err() == nil {
				lease, err := l.Lock(ctx)
				if err != nil {
					if ctx.Err() == nil {
						t.Errorf("caller %d: %v", i, err)
					}
					return
				}
				if n := inside.Add(weight); (n > one || weight == one && n != one) && lease.Valid() {
					t.Errorf("caller %d is not alone: %d", i, n)
				}
				time.Sleep(locktest.Visit)
				inside.Add(-weight)
				c.grants[i].Add(1)
				if err := lease.Unlock(context.Background()); err != nil && !errors.Is(err, holdfast.ErrUnavailable) {
					t.Errorf("caller %d: Unlock: %v", i, err)
				}
			}
		})
	}
	return c
}

// getOn waits until each caller has been granted the lock some more times.
func (c *crowd) getOn(t *testing.T, when string) {
	t.Helper()
	began := time.Now()
	before := make([]int64, len(c.grants))
	for i := range c.grants {
		before[i] = c.grants[i].Load()
	}
	gained := make([]int64, len(c.grants))
	defer func() { t.Logf("%s, in %v: %v", when, time.Since(began).Round(time.Millisecond), gained) }() // it names those who starve
	redistest.Eventually(t, limit(len(c.grants)), "all get on "+when, func() bool {
		for i := range c.grants {
			gained[i] = c.grants[i].Load() - before[i]
		}
		return slices.Min(gained) >= more
	})
}

func everyone(int) bool { return true }

// AC-81: a member that goes away in the middle, and comes back, keeps no caller from getting on: in
// as many managers, or in one set of them.
func TestRedlock_AllGetOnWithoutAMinority(t *testing.T) {
	for name, o := range outages {
		for of, members := range map[string][]int{"first of three": {0, 3}, "second of three": {1, 3}, "last of three": {2, 3}} {
			t.Run(name+", "+of, redistest.Worlds(func(t *testing.T) {
				all := Servers(t, members[1], redistest.WithAOF())
				p := all[members[0]].Proxy(t)
				newCandidate := func() holdfast.Locker {
					var clients []*redis.Client
					for i, srv := range all {
						if i == members[0] {
							clients = append(clients, p.Client(t))
						} else {
							clients = append(clients, srv.Client(t))
						}
					}
					return CandidateOn(t, clients, Mutexes)
				}
				var locks []holdfast.Locker
				for range 4 {
					locks = append(locks, newCandidate())
				}
				locks = append(locks, locks[0]) // two in one process
				c := gather(t, locks, everyone)
				c.getOn(t, "at first")
				o.down(all[members[0]], p)
				c.getOn(t, "without it")
				o.up(all[members[0]], p)
				c.getOn(t, "when it is back")
			}))
		}
	}
}

// Two of five are away from the beginning, one silent and one dead.
func TestRedlock_AllGetOnWithoutTwoOfFive(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := Servers(t, 5)
		all[0].Pause()
		all[3].Kill()
		var locks []holdfast.Locker
		for range 8 {
			locks = append(locks, all.Candidate(t))
		}
		gather(t, locks, everyone).getOn(t, "from the beginning")
	})
}

func TestRedlock_ReadersAndWritersGetOnWithoutAMinority(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := Servers(t, 3)
		var locks []holdfast.Locker
		for range 2 {
			locks = append(locks, all.CandidateFor(t, readSide), all.CandidateFor(t, writeSide))
		}
		c := gather(t, locks, func(i int) bool { return i%2 == 1 })
		c.getOn(t, "at first")
		all[1].Pause()
		c.getOn(t, "without it")
		all[1].Resume()
		c.getOn(t, "when it is back")
	})
}
