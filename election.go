package holdfast

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// maxProclaimed bounds what a leader says of itself, in bytes.
const maxProclaimed = 4 << 10

// Election chooses one leader among processes: the owner of the [Mutex] of its name, with fencing. A
// leader says something of itself, such as its address, which every process can read.
//
// An Election is a handle, as a Mutex is. Candidates are served in the order of their processes.
// Redisson's RFencedLock of that name is a candidate too. It leads without saying anything.
//
// A leader is one by its lease: see [Lease] for what that promises, and for what it does not. After a
// fail-over of Redis two processes can believe that they lead. Their terms have different numbers, so
// a resource that keeps the largest [Term.Number] can refuse the older leader.
type Election struct{ seat handle }

// Election returns a handle of the named election. The first call on the handle returns an error if
// the name or an option is bad. [WithLinger] and [WithHoldAtLeast] are refused: where they were passed
// to [New], Election needs them with 0. All other options are those of the Mutex.
func (m *Manager) Election(name string, opts ...LockOption) *Election {
	h := m.newHandle(lock.MutexKind, name, append(opts[:len(opts):len(opts)], WithFencing()))
	if h.err == nil {
		switch terms := h.lock.Terms; {
		case terms.Linger != 0:
			h.err = &OptionError{"WithLinger", terms.Linger, "must not be given to an Election"}
		case terms.AtLeast != 0:
			h.err = &OptionError{"WithHoldAtLeast", terms.AtLeast, "must not be given to an Election"}
		}
	}
	return &Election{h}
}

// Campaign waits until this process leads, and publishes value, of at most 4 KiB. When it returns a
// term, Redis has both: [Election.Leader] returns value, or what came later.
//
// Campaign waits as [Mutex.Lock] does, and returns the errors of that. If Redis does not confirm
// value, Campaign asks again. If that does not help within the time of [WithLease], or the lease is
// lost meanwhile, Campaign unlocks and waits for its next turn. It also returns
//
//   - [ErrInvalidOption] for a value that is too long.
//   - [ErrWouldDeadlock] under the context of a held lease of this election.
//   - [ErrWrongKind] if the key of the lock or of the record, holdfast_leader:{name}, holds something
//     else.
//   - [ErrUnavailable] if ctx has ended before Redis has confirmed value, or Redis denies it.
//
// On error this process does not lead. ctx bounds the wait only.
func (e *Election) Campaign(ctx context.Context, value string) (*Term, error) {
	if err := e.check(ctx, "Campaign"); err != nil {
		return nil, err
	}
	if err := checkProclaimed("Campaign", value); err != nil {
		return nil, err
	}
	for {
		lease, err := e.seat.take(ctx, "Campaign", false)
		if err != nil {
			return nil, err
		}
		t := newTerm(e, lease)
		seated, err := t.begin(ctx, value)
		if seated {
			return t, nil
		}
		_ = t.Resign(ctx) // value may be published; it is released in the background, or expires
		if err != nil {
			return nil, err
		}
	}
}

// Leader is who leads an election, as Redis knew it at one moment. A vacancy has Term 0.
type Leader struct {
	Value    string // what it said last; of Redisson's lock empty
	Owner    string // owner id
	Term     uint64
	Self     bool          // it is of this Manager
	TTL      time.Duration // without news the seat is free after that; 0: it is free, time.Duration(-1): its lock has no TTL
	Identity *Identity     // what its process says of itself; nil unless that and this Manager have [WithIdentity]
}

// Leader returns the leader, or [ErrNoLeader]. The answer may be out of date when it arrives. It sends
// one command, and with [WithIdentity] another. It blocks as [Manager.Inspect] does, and returns
// [ErrInvalidName], [ErrInvalidOption], [ErrUnavailable], [ErrClosed], or [ErrWrongKind] if one of the
// election's keys holds something else.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	if err := e.check(ctx, "Leader"); err != nil {
		return Leader{}, err
	}
	l, err := e.ask(ctx)
	switch {
	case err != nil:
		return Leader{}, err
	case l.Term == 0:
		return Leader{}, engine.NewError(ErrNoLeader, e.seat.lock.Name)
	}
	return l, nil
}

// Term returns the term in which this process leads, nil if it does not. It does no I/O.
func (e *Election) Term() *Term {
	if e == nil || !e.seat.made() {
		return nil
	}
	t, _ := e.seat.m.terms.Load(e.seat.lock.Mapped)
	if t, ok := t.(*Term); ok && t.lease.Valid() {
		return t
	}
	return nil
}

// ask returns the leader, or a vacancy.
func (e *Election) ask(ctx context.Context) (Leader, error) {
	name, m := e.seat.lock.Name, e.seat.m
	keys := wire.ElectionKeys(e.seat.lock.Mapped)
	value, err := m.engine.Ask(ctx, name, engine.Repeatable, protocol.Leader, protocol.Leader.Args(len(keys), keys...))
	if err != nil {
		return Leader{}, err
	}
	seat, wrong, ok := protocol.ParseSeat(value)
	switch {
	case !ok:
		return Leader{}, engine.NewError(ErrUnavailable, name, protocol.Unexpected(value))
	case wrong != nil:
		return Leader{}, engine.NewError(ErrWrongKind, name, wrong)
	}
	l := Leader{Value: seat.Value, Owner: seat.Owner, Term: seat.Term, TTL: seat.TTL}
	if l.Term != 0 {
		l.Self = strings.HasPrefix(l.Owner, m.engine.Process.Owners)
		if key := wire.ProcessKey(l.Owner); key != "" && m.engine.Identity != nil {
			l.Identity = m.saidAt(ctx, name, e.seat.lock.Mapped, key).identity
		}
	}
	return l, nil
}

// check refuses a call of an election's method.
func (e *Election) check(ctx context.Context, call string) error {
	if e == nil {
		return missing(call, "election")
	}
	if err := checkCall(ctx, call, &e.seat); err != nil {
		return err
	}
	return e.seat.err
}

func checkProclaimed(call, value string) error {
	if len(value) <= maxProclaimed {
		return nil
	}
	return &OptionError{call, fmt.Sprintf("%d bytes", len(value)), fmt.Sprintf("a value has at most %d bytes", maxProclaimed)}
}

// begin tells Redis that t leads, and what it says. It reports false if the lease has ended before that was confirmed, or it was not
// for so long that another candidate should try, and with an error if it will not be.
func (t *Term) begin(ctx context.Context, value string) (seated bool, err error) {
	if (*engine.Lease)(t.lease).Mode() == lock.Reentry.String() {
		return false, engine.NewError(ErrWouldDeadlock, t.lease.Name(), errLeads)
	}
	end := time.Now().Add(t.election.seat.lock.Terms.TTL)
	for pauses := retry.New(); t.lease.Valid() && time.Now().Before(end); {
		heard, err := t.say(ctx, &value)
		switch {
		case heard:
			t.lead()
			return true, nil
		case err == nil:
			return false, nil
		case !errors.Is(engine.FactOf(err), ErrUnavailable) || command.IsFinal(err) || ctx.Err() != nil:
			return false, err
		}
		engine.Sleep(ctx, pauses.NextBackOff())
	}
	return false, nil
}

var errLeads = errors.New("the context carries a lease of this election")
