package holdfast

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/voting"
)

// round is one time that a Redlock asks all its members. It belongs to the goroutine of the caller.
type round struct {
	l       *Redlock
	whole   *Lease // what members that grant it join
	begun   time.Time
	members []voting.Member
	errs    []error // by member; nil: it has granted its vote, or not answered

	// How it ended.

	lease *Lease        // nil: no majority
	err   error         // why not
	final error         // why asking again would bring the same answer, of the first member that says so; nil: it may not
	at    int           // the member to wait at; -1: none
	kept  []*Lease      // the votes to keep meanwhile
	limit time.Duration // a member that took longer to answer was absent
}

// vote is one member's answer.
type vote struct {
	member int
	err    error
}

// round asks all members once, but for those whose votes the caller has.
func (l *Redlock) round(ctx context.Context, votes []*Lease) *round {
	r := &round{
		l: l, whole: newGroupLease(&l.whole, l.quorum()), begun: time.Now(),
		members: make([]voting.Member, len(l.members)), errs: make([]error, len(l.members)), at: -1,
	}
	g := r.whole.together()
	g.members = l.members
	// Members may join after Lock has returned and its ctx has ended.
	g.life, g.stop = context.WithCancel(context.WithoutCancel(ctx))
	g.retake = func(whole, p *Lease) { l.retake(whole, l.members[memberOf(l.members, p)]) }
	for _, p := range votes {
		r.members[memberOf(l.members, p)].Answer = voting.Granted
		r.whole.join(p)
	}
	if err := l.whole.err; err != nil || ctx.Err() != nil {
		r.whole.dissolve()
		if r.err, r.final = err, err; err == nil {
			r.err = newLockError(ErrNotAcquired, l.whole.lock.Name, engine.ContextCauses(ctx)...)
		}
		return r
	}
	state := r.run(ctx, r.ask())
	if ctx.Err() == nil && r.whole.Valid() {
		r.lease = r.whole
		return r
	}
	if state == voting.Lost {
		r.kept = r.whole.dissolveBut(func(p *Lease) bool { return voting.Keeps(memberOf(l.members, p), r.at) })
	} else {
		r.whole.dissolve()
	}
	r.err = r.notGranted(ctx)
	return r
}

// memberOf returns which member a vote is of.
func memberOf(members []*handle, p *Lease) int {
	return slices.IndexFunc(members, func(h *handle) bool { return h.m.engine == p.inner().Engine() })
}

// ask asks the members whose votes the caller does not have.
func (r *round) ask() <-chan vote {
	g, votes := r.whole.together(), make(chan vote, len(r.members))
	for i, h := range r.l.members {
		if r.members[i].Answer == voting.Granted {
			continue
		}
		g.work.Go(func() { // ends with the lease, or when the member has joined it
			part, err := h.takePart(g.life, true)
			if err == nil {
				r.whole.join(part)
			}
			votes <- vote{i, err}
			if err != nil {
				r.l.retake(r.whole, h)
			}
		})
	}
	return votes
}

// run listens to the members until it is clear how the round ends.
func (r *round) run(ctx context.Context, votes <-chan vote) voting.State {
	for {
		state, again := r.count()
		if state != voting.Pending || ctx.Err() != nil {
			return state
		}
		var late <-chan time.Time
		if again > 0 {
			late = time.After(again)
		}
		select {
		case v := <-votes:
			r.errs[v.member] = v.err
			if r.members[v.member].Answer = voting.Granted; v.err != nil {
				r.members[v.member].Answer = answerOf(v.err)
			}
		case <-late:
		case <-ctx.Done():
		}
	}
}

// count returns how the round stands, and when to look again if no member answers until then; 0: the
// answers alone decide.
func (r *round) count() (s voting.State, again time.Duration) {
	parts := r.whole.together().known()
	stuck := false // not all will grant it
	for i := range r.members {
		m := &r.members[i]
		joined := slices.ContainsFunc(parts, func(p *Lease) bool { return p.inner().Engine() == r.l.members[i].m.engine })
		switch {
		case joined:
			m.Answer = voting.Granted
		case m.Answer == voting.Granted: // and was lost since
			m.Answer, r.errs[i] = voting.Failed, errVoteLost
		}
		stuck = stuck || m.Answer == voting.Refused || m.Answer == voting.Failed
	}
	if !stuck { // nothing depends on who is late
		s, r.at = voting.Count(r.members)
		return s, 0
	}
	longest := time.Duration(0)
	for i, h := range r.l.members {
		m := &r.members[i]
		if m.Lag = h.m.engine.Executor.Lag(h.lock.Mapped); m.Answer == voting.Open {
			m.Lag = max(m.Lag, time.Since(r.begun))
			longest = max(longest, m.Lag)
		}
		m.Vain = r.l.shunned(i)
	}
	s, r.at = voting.Count(r.members)
	r.limit = voting.Limit(r.members)
	if longest < r.limit {
		again = r.limit - longest
	}
	return s, min(max(again, time.Millisecond), lookAfter/10)
}
