package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/judge"
)

// What a process says of its own locks, without asking Redis: Manager.Locks, Contended and Stats.

// known is what the workers of a process know of a lock: bounds of what its manager must say.
type known struct {
	leases []*claim      // that are valid: it has them at least
	most   int           // it has no more leases
	waits  []*judge.Wait // callers, of whom some may have been answered a moment ago
}

// knownLocked counts what workers of p know of u.
func (u *unit) knownLocked(p *process) (k known) {
	for _, x := range u.Claims {
		c := x.Shell.(*claim)
		if c.p != p {
			continue
		}
		k.most++
		if c.lease.Err() == nil && c.lease.Valid() {
			k.leases = append(k.leases, c)
		}
	}
	for _, x := range u.Waits {
		if x.Process != p {
			continue
		}
		k.most++
		if !x.Unlocks {
			k.waits = append(k.waits, x)
		}
	}
	return k
}

// locals looks at what the worker's process says of its locks.
func (k *worker) locals() {
	w, p := k.w, k.p
	w.mu.Lock()
	waits := w.judge.localsLocked(p)
	w.mu.Unlock()
	k.inTurn()
	k.inTurn() // who was answered before has returned
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stats.Calls++
	if p.dead || p.closed || p.stalls > 0 {
		return
	}
	for u, shown := range waits {
		n := 0
		for _, x := range shown.waits {
			if slices.Contains(u.Waits, x) && !x.Once && !x.Parted && x.Since < shown.at {
				n++
			}
		}
		if n > shown.waiters {
			w.judge.failLocked("local locks", "%v: %v says that %d wait, and %d do", u, p, shown.waiters, n)
		}
	}
}

// shown is what a manager has said of those who wait for a lock.
type shown struct {
	at      time.Duration
	waiters int
	waits   []*judge.Wait // that were there then
}

// localsLocked judges what the managers of p say of their locks, and returns what they say of those who wait.
func (j *court) localsLocked(p *process) map[*unit]shown {
	all := map[*unit]shown{}
	if p.dead || p.closed {
		return all
	}
	for n, m := range p.managers {
		said := map[string]holdfast.LocalLock{}
		for l := range m.Locks() {
			if _, twice := said[l.Name]; twice {
				j.failLocked("local locks", "%v has %s twice", p, l.Name)
			}
			said[l.Name] = l
		}
		waiting := 0
		for _, u := range p.w.servers[n].units {
			k := u.knownLocked(p)
			j.localLocked(p, u, k, said[u.Name])
			if p.calmLocked(u.s) && j.w.plan.Shape != Majority {
				all[u] = shown{j.w.now(), said[u.Name].Waiters, k.waits}
			}
			waiting += len(k.waits)
			delete(said, u.Name)
		}
		for name := range said {
			j.failLocked("local locks", "%v has %q, which it does not use", p, name)
		}
		if s := m.Stats(); j.w.plan.Shape != Majority && s.Waiting > waiting {
			j.failLocked("local locks", "%v counts %d that wait, and %d do", p, s.Waiting, waiting)
		}
		j.contendedLocked(p, m)
	}
	return all
}

// localLocked judges what p says of u. Which requests of a Redlock's rounds are under way is not known.
func (j *court) localLocked(p *process, u *unit, k known, l holdfast.LocalLock) {
	votes := slices.ContainsFunc(j.w.plan.Locks, func(l Lock) bool { return l.Kind == Redlock && l.Name == u.Name })
	switch {
	case votes:
	case l.Leases < len(k.leases), l.Leases > k.most, (l.Leases > 0) != (l.State == holdfast.LocalHeld):
		j.failLocked("local locks", "%v: %v says %s by %d leases, and has from %d to %d", u, p, l.State, l.Leases, len(k.leases), k.most)
	case l.Waiters > len(k.waits):
		j.failLocked("local locks", "%v: %v says that %d wait, and %d do", u, p, l.Waiters, len(k.waits))
	}
	if len(k.leases) != 1 || k.most != 1 || votes {
		return
	}
	c := k.leases[0]
	kind := map[Kind]holdfast.Kind{Mutex: holdfast.KindMutex, Fair: holdfast.KindFair, RW: holdfast.KindRead, Semaphore: holdfast.KindSemaphore}[u.kind]
	if u.kind == RW && c.Write {
		kind = holdfast.KindWrite
	}
	single := len(c.units) == 1
	if l.Kind != kind || single && l.Token != c.lease.Token() || single && !l.Deadline.Equal(c.lease.Deadline()) || single && !c.nested && l.Label != c.label {
		j.failLocked("local locks", "%v: %s has a lease of kind %s, token %d and label %q until %v, and its process says %+v", u, c.Who, kind, c.lease.Token(), c.label, c.lease.Deadline(), l)
	}
}

// contendedLocked judges which locks are waited for most: names that are used, the busiest first.
func (j *court) contendedLocked(p *process, m *holdfast.Manager) {
	list := m.Contended(3)
	sorted := slices.IsSortedFunc(list, func(a, b holdfast.Contention) int { return cmp.Compare(b.Waits, a.Waits) })
	odd := slices.ContainsFunc(list, func(c holdfast.Contention) bool {
		return c.Waits <= 0 || c.Excess != 0 || !slices.ContainsFunc(j.w.units, func(u *unit) bool { return u.Name == c.Name })
	})
	if len(list) > 3 || !sorted || odd {
		j.failLocked("local locks", "%v is waited for most at %+v", p, list)
	}
}
