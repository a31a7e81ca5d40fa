package sim

import (
	"context"

	"github.com/holdfast-go/holdfast"
)

// handle is one of a process's locks.
type handle struct {
	plan  *Lock
	write holdfast.Locker
	read  holdfast.Locker // rw; else nil
	rw    *holdfast.RWMutex
	async func(context.Context) <-chan holdfast.Result
	seat  *holdfast.Election  // nil: it is none
	sem   *holdfast.Semaphore // nil: it is none
	units []*unit             // what it locks
	vote  *unit               // of a Redlock, whose members are units; else nil
}

// calls are those of one side of a lock.
type calls struct {
	lock, try func(context.Context) (*holdfast.Lease, error)
	async     func(context.Context) <-chan holdfast.Result // nil: the lock has none
}

// side returns the calls of a side of the lock. Those of a read side are RWMutex's own if own says so, and else RLocker's.
func (h *handle) side(read, own bool) calls {
	switch {
	case !read || h.rw == nil:
		return calls{h.write.Lock, h.write.TryLock, h.async}
	case own:
		return calls{h.rw.RLock, h.rw.TryRLock, h.rw.RLockAsync}
	}
	return calls{h.read.Lock, h.read.TryLock, h.rw.RLockAsync}
}

// handles makes the locks of the plan.
func (p *process) handles(plan []Lock) []handle {
	all := make([]handle, len(plan))
	for i := range plan {
		l := &plan[i]
		h := handle{plan: l}
		switch l.Kind {
		case Multi:
			var parts []holdfast.Locker
			for _, k := range l.Of {
				parts = append(parts, all[k].write)
				h.units = append(h.units, all[k].units...)
			}
			h.write = must(holdfast.NewMulti(parts...))
		case Redlock:
			var members []holdfast.Locker
			for n, m := range p.managers {
				member := p.single(m, l, l.Member)
				members = append(members, member.write)
				h.units = append(h.units, p.w.unit(n, l.Name, l.Member))
			}
			h.write, h.vote = must(holdfast.NewRedlock(members...)), p.w.election(l.Name, h.units)
		default:
			h = p.single(p.managers[0], l, l.Kind)
			h.units = []*unit{p.w.unit(0, l.Name, l.Kind)}
			if l.Seat {
				h.seat = p.managers[0].Election(l.Name, l.options()...)
			}
		}
		all[i] = h
	}
	return all
}

func (p *process) single(m *holdfast.Manager, l *Lock, k Kind) handle {
	h := handle{plan: l}
	switch k {
	case Fair:
		f := m.FairMutex(l.Name, l.options()...)
		h.write, h.async = f, f.LockAsync
	case RW:
		rw := m.RWMutex(l.Name, l.options()...)
		h.write, h.read, h.rw, h.async = rw, rw.RLocker(), rw, rw.LockAsync
	case Semaphore:
		s := m.Semaphore(l.Name, allPermits, l.options()...)
		h.write, h.sem = s.Locker(l.Permits), s
		h.async = func(ctx context.Context) <-chan holdfast.Result { return s.AcquireAsync(ctx, l.Permits) }
	default:
		x := m.Mutex(l.Name, l.options()...)
		h.write, h.async = x, x.LockAsync
	}
	return h
}

func (l *Lock) options() (list []holdfast.LockOption) {
	if l.Lease > 0 && !l.Fixed {
		list = append(list, holdfast.WithLease(l.Lease))
	}
	if l.Fixed {
		list = append(list, holdfast.WithFixedLease(l.Lease))
	}
	if l.Fencing {
		list = append(list, holdfast.WithFencing())
	}
	if l.MaxHold > 0 {
		list = append(list, holdfast.WithMaxHold(l.MaxHold))
	}
	if l.AtLeast > 0 {
		list = append(list, holdfast.WithHoldAtLeast(l.AtLeast))
	}
	if l.Wanted {
		list = append(list, holdfast.WithWanted())
	}
	if l.Value != "" {
		list = append(list, holdfast.WithValue(l.Value))
	}
	if l.Linger > 0 {
		list = append(list, holdfast.WithLinger(l.Linger))
	}
	return list
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}
