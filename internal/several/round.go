package several

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/voting"
)

// round is one time that a majority asks all its members. It belongs to the goroutine of the caller.
type round struct {
	l     *Majority
	group *Group // what members that grant it join
	Ballot

	// How it ended.

	lease *engine.Lease   // nil: no majority
	err   error           // why not
	final error           // see Members.NotGranted
	at    int             // the member to wait at; -1: none
	kept  []*engine.Lease // the votes to keep meanwhile
	limit time.Duration   // a member that took longer to answer was absent
}

// vote is one member's answer.
type vote struct {
	member int
	err    error
}

var (
	// ErrVoteLost is why a vote does not count that a member has given.
	ErrVoteLost = errors.New("its vote was lost before there was a majority")

	errNotAwaited = errors.New("not waited for") // the others had decided the round
)

// round asks all members once, but for those whose votes the caller has. A caller that has waited has had a round before.
func (l *Majority) round(ctx context.Context, votes []*engine.Lease, waited bool) *round {
	r := &round{
		l: l, group: l.newGroup(ctx, l.retake), at: -1,
		Ballot: Ballot{Begun: time.Now(), Members: make([]voting.Member, len(l.members)), Errs: make([]error, len(l.members))},
	}
	r.group.waited = waited
	for _, p := range votes {
		r.Members[l.memberOf(p)].Answer = voting.Granted
		r.group.Join(p)
	}
	if ctx.Err() != nil {
		r.group.Dissolve()
		r.err = r.group.errorOf(engine.NotAcquired, engine.ContextCauses(ctx)...)
		return r
	}
	state := r.run(ctx, r.ask())
	if twins := l.twin.Load(); twins != nil {
		r.err, r.final = *twins, *twins
		r.group.Dissolve()
		return r
	}
	if ctx.Err() == nil && r.group.Valid() {
		r.lease = r.group.lease
		return r
	}
	if state == voting.Lost {
		r.kept = r.group.dissolveBut(func(p *engine.Lease) bool { return voting.Keeps(l.memberOf(p), r.at) })
	} else {
		r.group.Dissolve()
	}
	r.Over = ctx.Err() != nil
	r.learn()
	r.err, r.final = l.calls.NotGranted(ctx, &r.Ballot)
	return r
}

// ask asks the members whose votes the caller does not have.
func (r *round) ask() <-chan vote {
	g, votes := r.group, make(chan vote, len(r.Members))
	for i := range r.l.members {
		if r.Members[i].Answer == voting.Granted {
			continue
		}
		g.work.Go(func() { // ends with the lease, or when the member has joined it
			part, err := r.l.calls.Take(g.life, i, false)
			switch {
			case err == nil:
				g.Join(part)
			case r.l.calls.Is(err, engine.NotAcquired) && r.l.mayAsk():
				err = cmp.Or(r.l.twins(g.life, i), err)
			}
			votes <- vote{i, err}
			if err != nil {
				r.l.retake(g, i)
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
			r.Errs[v.member] = v.err
			r.Members[v.member].Answer = r.l.answerOf(v.err)
		case <-late:
		case <-ctx.Done():
		}
	}
}

// twins returns an error if the caller's own vote of another member holds this one: the two are one server.
func (l *Majority) twins(ctx context.Context, member int) error {
	owners, _ := l.calls.Owners(ctx, member)
	for i := range l.members {
		if i != member && strings.Contains(owners, l.members[i].Engine.Process.Owners) {
			err := l.calls.Twins(min(i, member), max(i, member))
			l.twin.Store(&err)
			return err
		}
	}
	return nil
}

// mayAsk reports, once a second, that a refused call may ask for twins: a crowd of them does not cost a request each.
func (l *Majority) mayAsk() bool {
	next, now := l.askAt.Load(), int64(time.Since(l.first().Epoch))
	return now >= next && l.askAt.CompareAndSwap(next, now+int64(lookAfter))
}

// answerOf returns what a member has said with an error.
func (l *Majority) answerOf(err error) voting.Answer {
	switch {
	case err == nil:
		return voting.Granted
	case l.calls.Is(err, engine.NotAcquired):
		return voting.Refused
	}
	return voting.Failed
}

// count returns how the round stands, and when to look again if no member answers until then; 0: the
// answers alone decide.
func (r *round) count() (s voting.State, again time.Duration) {
	parts := r.group.known()
	stuck := false // not all will grant it
	for i := range r.Members {
		m := &r.Members[i]
		joined := slices.ContainsFunc(parts, func(p *engine.Lease) bool { return p.Engine() == r.l.members[i].Engine })
		switch {
		case joined:
			m.Answer = voting.Granted
		case m.Answer == voting.Granted: // and was lost since
			m.Answer, r.Errs[i] = voting.Failed, ErrVoteLost
		}
		stuck = stuck || m.Answer == voting.Refused || m.Answer == voting.Failed
	}
	if !stuck { // nothing depends on which member is late
		s, r.at = voting.Count(r.Members)
		return s, 0
	}
	longest := time.Duration(0)
	for i := range r.l.members {
		m := &r.Members[i]
		if m.Lag = r.l.members[i].lag(); m.Answer == voting.Open {
			m.Lag = max(m.Lag, time.Since(r.Begun))
			longest = max(longest, m.Lag)
		}
		m.Vain = r.l.shunned(i)
	}
	s, r.at = voting.Count(r.Members)
	r.limit = voting.Limit(r.Members)
	if longest < r.limit {
		again = r.limit - longest
	}
	return s, min(max(again, time.Millisecond), lookAfter/10)
}

// learn finds out why members have not answered, of a round that is over because the caller's context is, or that the others
// have decided. What it finds is no answer to this round: asking again may bring another one.
func (r *round) learn() {
	for i := range r.l.members {
		m, executor := &r.Members[i], r.l.members[i].Engine.Executor
		if m.Answer != voting.Open {
			continue
		}
		inTime := m.Lag <= r.limit
		m.Lag = max(r.l.members[i].lag(), time.Since(r.Begun))
		switch r.Errs[i] = executor.Failure(); {
		case r.Errs[i] != nil:
		case m.Lag >= engine.Silence:
			r.Errs[i] = command.ErrSilent
		case !r.Over && inTime:
			r.Errs[i] = errNotAwaited
		}
	}
}
