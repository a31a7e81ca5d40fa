package locktest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// handed is the surroundings of a scenario that is for each side of a lock, such as those about tickets: ours are the locks that it is
// about. Rivals take Env.Lock, which excludes them.
type handed struct {
	*Env
	ours func(m *holdfast.Manager, opts ...holdfast.LockOption) holdfast.Locker
	// reads says that it is about the read side.
	reads bool
}

// mustDetach detaches a lease or fails.
func (e *handed) mustDetach(l *holdfast.Lease, d time.Duration) string {
	e.Helper()
	ticket, err := l.Detach(bg, d)
	if errors.Is(err, holdfast.ErrUnavailable) && e.excused(err) {
		err = Unlock(l)
	}
	if err != nil || ticket == "" {
		e.Fatalf("Detach: %q, %v", ticket, err)
	}
	e.WantErr(l.Err(), holdfast.ErrReleased)
	return ticket
}

// mustAttach attaches a ticket or fails.
func (e *handed) mustAttach(m *holdfast.Manager, ticket string, opts ...holdfast.LockOption) *holdfast.Lease {
	e.Helper()
	l, err := answered(e.Env, func() (*holdfast.Lease, error) { return m.Attach(bg, ticket, opts...) })
	if err != nil {
		e.Fatalf("Attach: %v", err)
	}
	return l
}

// holder is the only owner, as Inspect shows it. P3: what is not available is held.
func (e *handed) holder(detached bool) holdfast.Holder {
	e.Helper()
	info, err := e.Inspect(e.Manager())
	owners := 1
	if e.kind.Permits {
		e.wantPermits(0)
		owners = Permits
	}
	if err != nil || len(info.Holders) != owners || slices.ContainsFunc(info.Holders, func(h holdfast.Holder) bool {
		return h.Detached != detached || !h.Holdfast || h.TTL != info.Holders[0].TTL
	}) {
		e.Fatalf("Inspect: %+v, %v", info, err)
	}
	return info.Holders[0]
}

// Permits is how many permits the semaphore of a suite has. A lease has all of them.
const Permits = 2

// wantPermits fails unless so many are available, and P3: the others are held. A semaphore that was deleted has all.
func (e *Env) wantPermits(available int) {
	e.Helper()
	info, err := e.Inspect(e.Manager())
	if info.Kind == holdfast.KindFree && available == Permits {
		return
	}
	if err != nil || info.Permits != Permits || info.Available != available || len(info.Holders)+info.Ended != Permits-available {
		e.Errorf("Inspect: %+v, %v; want %d of %d permits available", info, err, available, Permits)
	}
}

// fenced is WithFencing, for kinds that have tokens.
func (e *handed) fenced() []holdfast.LockOption {
	if e.kind.Permits {
		return nil
	}
	return []holdfast.LockOption{holdfast.WithFencing()}
}

// attachOf matches requests that attach the lock.
func attachOf(key string) redistest.Match { return ScriptOn(key, "attach", "permit_attach") }

// handedScenarios are about Detach and Attach. Each runs for what every kind of lock has, and for the read side.
var handedScenarios = map[string]func(*handed){
	// T1, T3 to T5: the lock stays taken all the time, and the waiter comes behind the second process, with a larger token.
	"AnotherProcessFinishes": func(e *handed) {
		a, b, c := e.Manager(), e.Manager(holdfast.WithLease(time.Minute)), e.Manager(byMessage...)
		first := e.MustLock(e.ours(a, e.fenced()...))
		waiting := e.Locking(e.Lock(c, e.fenced()...))
		e.Listening(1)
		before := a.Stats().Commands
		ticket := e.mustDetach(first, longStay)
		if n := a.Stats().Commands - before; n != 1 && e.kind.Virtual {
			e.Errorf("Detach sent %d commands", n)
		}
		if first.Valid() || a.Stats().Held != 0 || len(ticket) > 512+len(e.Key) || strings.Trim(ticket, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			e.Errorf("after Detach: valid %v, held %d, ticket %q", first.Valid(), a.Stats().Held, ticket)
		}
		e.WantErr(first.Unlock(bg), holdfast.ErrNotHeld)
		e.Busy(e.Lock(a).TryLock)
		if h := e.holder(true); h.TTL > longStay || h.TTL < longStay-patience || strings.Contains(h.Owner, ticket) {
			e.Errorf("between them: %+v", h)
		}
		before = b.Stats().Commands
		second := e.mustAttach(b, ticket)
		if n := b.Stats().Commands - before; n != 1 && e.kind.Virtual {
			e.Errorf("Attach sent %d commands", n)
		}
		if second.Token() != first.Token() || (second.Token() == 0) != e.kind.Permits || second.Permits() != first.Permits() || second.Name() != first.Name() || !second.Valid() {
			e.Errorf("the second lease: token %d of %d, name %q, valid %v", second.Token(), first.Token(), second.Name(), second.Valid())
		}
		if h := e.holder(false); h.TTL > time.Minute || h.TTL < time.Minute-patience {
			e.Errorf("after Attach: %+v", h)
		}
		e.Busy(e.Lock(a).TryLock)
		e.MustUnlock(second)
		third := e.Soon("the waiter", waiting)
		if third.Token() <= second.Token() && !e.kind.Permits {
			e.Errorf("token %d after %d", third.Token(), second.Token())
		}
		e.MustUnlock(third)
		for _, m := range []*holdfast.Manager{a, b, c} {
			e.Clean(m, Tokens)
		}
	},

	// Its own process can do it too, and its waiters come behind.
	"TheSameProcessFinishes": func(e *handed) {
		m := e.Manager(byMessage...)
		first := e.MustLock(e.ours(m))
		waiting := e.Parking(m, 1, e.Lock(m))
		ticket := e.mustDetach(first, longStay)
		second := e.mustAttach(m, ticket)
		e.Parked(m, 1)
		e.Passes(second, "the waiter", waiting)
		e.Clean(m)
	},

	// T2: each process has many callers that try.
	"OneOfManyAttaches": func(e *handed) {
		ticket := e.mustDetach(e.MustLock(e.ours(e.Manager())), longStay)
		got := make(chan holdfast.Result)
		const processes, callers = 3, 8
		for range processes {
			m := e.Manager()
			for range callers {
				go func() {
					l, err := m.Attach(bg, ticket)
					got <- holdfast.Result{Lease: l, Err: err}
				}()
			}
		}
		var all []*holdfast.Lease
		for range processes * callers {
			if r := <-got; r.Err == nil {
				all = append(all, r.Lease)
			} else if !e.excused(r.Err) {
				e.WantErr(r.Err, holdfast.ErrLeaseLost)
			}
		}
		if len(all) != 1 {
			e.Fatalf("%d of them have the lock", len(all))
		}
		e.MustUnlock(all[0])
		_, err := e.Manager().Attach(bg, ticket)
		e.WantErr(err, holdfast.ErrLeaseLost)
		e.Free()
	},

	// No process comes: as after a crash.
	"TicketThatIsNotUsedEnds": func(e *handed) {
		m, other := e.Manager(byMessage...), e.Manager(byMessage...)
		began := time.Now()
		l := e.MustLock(e.ours(m))
		here := e.Parking(m, 1, e.Lock(m))
		ticket := e.mustDetach(l, shortStay)
		e.MustUnlock(e.Soon("the waiter here", here))
		e.MustUnlock(e.Soon("the waiter elsewhere", e.Locking(e.Lock(other))))
		if d := time.Since(began); d < shortStay {
			e.Errorf("the next owner came after %v", d)
		}
		_, err := m.Attach(bg, ticket)
		e.WantErr(err, holdfast.ErrLeaseLost)
		e.Clean(m)
	},

	// The lock is the ticket's: its process may end.
	"CloseLeavesItToTheTicket": func(e *handed) {
		m, other := e.Manager(), e.Manager()
		ticket := e.mustDetach(e.MustLock(e.ours(m)), longStay)
		redistest.Check(e, m.Close(bg))
		e.Busy(e.Lock(other).TryLock)
		e.MustUnlock(e.mustAttach(other, ticket))
		e.Free()
	},

	// A call that is refused changes nothing.
	"WhatCannotBeDetachedStays": func(e *handed) {
		m := e.Manager()
		l := e.MustLock(e.ours(m, holdfast.WithMaxHold(time.Hour)))
		refused := func(l *holdfast.Lease, ctx context.Context, d time.Duration) {
			e.Helper()
			ticket, err := l.Detach(ctx, d)
			e.WantErr(err, holdfast.ErrInvalidOption)
			if ticket != "" || !l.Valid() {
				e.Errorf("ticket %q, valid %v", ticket, l.Valid())
			}
		}
		if !e.kind.Permits { // which is not re-entrant
			again, err := e.ours(m).Lock(l.Context(bg))
			redistest.Must(e, err)
			refused(l, bg, longStay)
			e.MustUnlock(again)
		}
		refused(l, bg, time.Millisecond)
		refused(l, nil, longStay)
		ticket := e.mustDetach(l, longStay)
		_, err := l.Detach(bg, longStay)
		e.WantErr(err, holdfast.ErrNotHeld)
		for _, bad := range []string{"", "x", ticket[:len(ticket)-1], ticket + "A", strings.Replace(ticket, "_", "_A", 1)} {
			_, err := m.Attach(bg, bad)
			e.WantErr(err, holdfast.ErrInvalidOption)
			if err != nil && strings.Contains(err.Error(), ticket[len(ticket)/2:]) {
				e.Errorf("the error has a secret: %v", err)
			}
		}
		_, err = m.Attach(bg, ticket, holdfast.WithFencing())
		e.WantErr(err, holdfast.ErrInvalidOption)
		_, err = m.Attach(bg, ticket, holdfast.WithLease(-1))
		e.WantErr(err, holdfast.ErrInvalidOption)
		e.MustUnlock(e.mustAttach(m, ticket))

		stays := e.MustLock(e.ours(m, holdfast.WithHoldAtLeast(time.Millisecond)))
		refused(stays, bg, longStay)
		e.MustUnlock(stays)
		e.MustUnlock(e.MustLock(e.Lock(m))) // and at the end of that time
		e.Clean(m)
	},
}

// ticketScenarios are those for what every kind of lock has, and rwTicketScenarios for the read side.
var (
	ticketScenarios   = forWriters(handedScenarios)
	rwTicketScenarios = forReaders(handedScenarios, map[string]func(*Env){
		// Other readers go on beside the ticket, and a writer waits for all of them.
		"TicketBesideReaders": func(e *Env) {
			m, other := e.Manager(), e.Manager(byMessage...)
			h := &handed{Env: e}
			alone := e.MustRLock(e.RW(m, holdfast.WithMaxHold(time.Hour)))
			beside, again := e.MustRLock(e.RW(m)), e.MustRLock(e.RW(m))
			_, err := beside.Detach(bg, longStay)
			e.WantErr(err, holdfast.ErrInvalidOption) // they share what the process has
			ticket := h.mustDetach(alone, longStay)
			writing := e.InQueue(1, e.RW(other))
			e.MustUnlock(beside, again)
			second := h.mustAttach(m, ticket)
			e.Busy(e.RW(m).TryLock)
			e.Passes(second, "the writer", writing)
			e.Clean(m)
		},

		// Which side Redis has is not known: the lease stays.
		"UnansweredDowngradeIsNotDetached": func(e *Env) {
			m, p := e.Via()
			write, read := e.bothSides(e.RW(m))
			_, err := write.Detach(bg, longStay)
			e.WantErr(err, holdfast.ErrInvalidOption)
			gate := p.HoldRequest(downgradeOf(e.Key))
			unlocked := redistest.Begin(func() error { return write.Unlock(bg) })
			gate.Wait(e)
			ticket, err := read.Detach(bg, longStay)
			e.WantErr(err, holdfast.ErrUnavailable)
			if ticket != "" || !read.Valid() {
				e.Errorf("ticket %q, valid %v", ticket, read.Valid())
			}
			gate.Release()
			<-unlocked
			h := &handed{Env: e}
			e.MustUnlock(h.mustAttach(m, h.mustDetach(read, longStay)))
			e.Clean(m)
		},
	})
)

// forWriters makes scenarios for what every kind of lock has, and forReaders for the read side: of those for both, and more.
func forWriters(both map[string]func(*handed)) map[string]func(*Env) {
	all := map[string]func(*Env){}
	for name, scenario := range both {
		all[name] = func(e *Env) { scenario(&handed{Env: e, ours: e.Lock}) }
	}
	return all
}

func forReaders(both map[string]func(*handed), more map[string]func(*Env)) map[string]func(*Env) {
	all := map[string]func(*Env){}
	maps.Copy(all, more)
	for name, scenario := range both {
		all["Reader"+name] = func(e *Env) {
			scenario(&handed{e, func(m *holdfast.Manager, opts ...holdfast.LockOption) holdfast.Locker {
				return e.RW(m, opts...).RLocker()
			}, true})
		}
	}
	return all
}
