package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/voting"
)

// round is one time that a majority asks all its members. It belongs to the goroutine of the caller.
type round struct {
	l       *Majority
	group   *group // what members that grant it join
	begun   time.Time
	members []voting.Member
	errs    []error // by member; nil: it has granted its vote, or not answered
	over    bool    // the context of the caller has ended

	// How it ended.

	lease *Lease        // nil: no majority
	err   error         // why not
	final error         // see notGranted
	at    int           // the member to wait at; -1: none
	kept  []*Lease      // the votes to keep meanwhile
	limit time.Duration // a member that took longer to answer was absent
}

// vote is one member's answer.
type vote struct {
	member int
	err    error
}

var (
	// errVoteLost is why a vote does not count that a member has given.
	errVoteLost = errors.New("its vote was lost before there was a majority")

	errNotAwaited = errors.New("not waited for") // the others had decided the round
)

// round asks all members once, but for those whose votes the caller has. A caller that has waited has had a round before.
func (l *Majority) round(ctx context.Context, votes []*Lease, waited bool) *round {
	r := &round{
		l: l, group: l.newGroup(ctx, l.retake), at: -1,
		begun: time.Now(), members: make([]voting.Member, len(l.members)), errs: make([]error, len(l.members)),
	}
	r.group.waited = waited
	for _, p := range votes {
		r.members[l.memberOf(p)].Answer = voting.Granted
		r.group.join(p)
	}
	if ctx.Err() != nil {
		r.group.dissolve()
		r.err = NewError(lock.NotAcquired, l.whole.Name, contextCauses(ctx)...)
		return r
	}
	state := r.run(ctx, r.ask())
	if twins := l.twin.Load(); twins != nil {
		r.err = l.whole.engine.explain(l.whole.Name, twins)
		r.final = r.err
		r.group.dissolve()
		return r
	}
	if ctx.Err() == nil && r.group.valid() {
		r.lease = r.group.lease
		return r
	}
	if state == voting.Lost {
		r.kept = r.group.dissolveBut(func(p *Lease) bool { return voting.Keeps(l.memberOf(p), r.at) })
	} else {
		r.group.dissolve()
	}
	r.over = ctx.Err() != nil
	r.learn()
	r.err, r.final = r.notGranted(ctx)
	return r
}

// ask asks the members whose votes the caller does not have.
func (r *round) ask() <-chan vote {
	g, votes := r.group, make(chan vote, len(r.members))
	for i := range r.l.members {
		if r.members[i].Answer == voting.Granted {
			continue
		}
		g.work.Go(func() { // ends with the lease, or when the member has joined it
			lease, err := r.l.members[i].take(g.life, true, part)
			switch {
			case err == nil:
				g.join(lease)
			case errors.Is(err, lock.NotAcquired) && r.l.mayAsk():
				r.l.lookForTwins(g.life, i)
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
			r.errs[v.member] = v.err
			r.members[v.member].Answer = r.l.answerOf(v.err)
		case <-late:
		case <-ctx.Done():
		}
	}
}

// lookForTwins finds out whether the caller's own vote of another member holds this one: the two are one server.
func (l *Majority) lookForTwins(ctx context.Context, member int) {
	owners, _ := l.members[member].owners(ctx)
	for i, h := range l.members {
		if i != member && strings.Contains(owners, h.engine.Process.Owners) {
			which := fmt.Errorf("members %d and %d are the same server: give each a server of its own", min(i, member)+1, max(i, member)+1)
			l.twin.Store(lock.Because(lock.OneServer, which))
		}
	}
}

// mayAsk reports, once a second, that a refused call may ask for twins: a crowd of them does not cost a request each.
func (l *Majority) mayAsk() bool {
	next, now := l.askAt.Load(), int64(time.Since(l.whole.engine.Epoch))
	return now >= next && l.askAt.CompareAndSwap(next, now+int64(lookAfter))
}

// answerOf returns what a member has said with an error.
func (l *Majority) answerOf(err error) voting.Answer {
	switch {
	case err == nil:
		return voting.Granted
	case errors.Is(err, lock.NotAcquired):
		return voting.Refused
	}
	return voting.Failed
}

// count returns how the round stands, and when to look again if no member answers until then; 0: the
// answers alone decide.
func (r *round) count() (s voting.State, again time.Duration) {
	parts := r.group.known()
	stuck := false // not all will grant it
	for i := range r.members {
		m := &r.members[i]
		joined := slices.ContainsFunc(parts, func(p *Lease) bool { return p.Engine() == r.l.members[i].engine })
		switch {
		case joined:
			m.Answer = voting.Granted
		case m.Answer == voting.Granted: // and was lost since
			m.Answer, r.errs[i] = voting.Failed, errVoteLost
		}
		stuck = stuck || m.Answer == voting.Refused || m.Answer == voting.Failed
	}
	if !stuck { // nothing depends on which member is late
		s, r.at = voting.Count(r.members)
		return s, 0
	}
	longest := time.Duration(0)
	for i := range r.l.members {
		m := &r.members[i]
		if m.Lag = r.l.members[i].lag(); m.Answer == voting.Open {
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

// learn finds out why members have not answered, of a round that is over because the caller's context is, or that the others
// have decided. What it finds is no answer to this round: asking again may bring another one.
func (r *round) learn() {
	for i := range r.l.members {
		m, executor := &r.members[i], r.l.members[i].engine.Executor
		if m.Answer != voting.Open {
			continue
		}
		inTime := m.Lag <= r.limit
		m.Lag = max(r.l.members[i].lag(), time.Since(r.begun))
		switch r.errs[i] = executor.Failure(); {
		case r.errs[i] != nil:
		case m.Lag >= lock.Silence:
			r.errs[i] = command.ErrSilent
		case !r.over && inTime:
			r.errs[i] = errNotAwaited
		}
	}
}
