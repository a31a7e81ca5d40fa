package several

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A caller of Redlock.Lock whose context ends, in each phase of the election.

// leaver is that caller, and the electorate around it.
type leaver struct {
	all     Electorate
	alive   []int // members that are not stopped; the last one may be
	proxies []*redistest.Proxy
	Candidate
	rival Candidate // of locks that exclude the leaver's
	locks Side      // of a member of the rival

	ctx    context.Context
	leave  context.CancelCauseFunc // ends ctx
	failed chan error              // what Lock returned
	held   []*holdfast.Lease       // by rival
}

var errEnough = errors.New("the caller has enough")

// leaving are the phases. Each has Lock come so far, and ends its context; what it returns brings to an end what the
// phase has withheld.
var leaving = map[string]struct {
	members int
	silent  bool // so many members have not answered that they may be taken for unavailable
	until   func(t *testing.T, l *leaver) (after func())
}{
	"before a vote is asked for": {3, false, func(t *testing.T, l *leaver) func() {
		asked := func() (n int64) {
			for _, p := range l.proxies {
				n += p.Count(locktest.ScriptOn(Vote))
			}
			return n
		}
		before := asked()
		l.leave(errEnough)
		l.lock(l.ctx)
		return func() {
			if n := asked(); n > before {
				t.Errorf("%d requests were sent", n-before)
			}
		}
	}},
	"no member has been reached": {3, true, func(t *testing.T, l *leaver) func() {
		return l.withhold(t, (*redistest.Proxy).HoldRequest, l.alive)
	}},
	"no member has been heard": {3, true, func(t *testing.T, l *leaver) func() {
		return l.withhold(t, (*redistest.Proxy).HoldReply, l.alive)
	}},
	"one vote is held": {3, true, func(t *testing.T, l *leaver) func() {
		return l.withhold(t, (*redistest.Proxy).HoldReply, l.alive[1:])
	}},
	"in line": {3, false, func(t *testing.T, l *leaver) func() {
		l.held = append(l.held, locktest.MustLock(t, l.rival))
		l.lock(l.ctx)
		l.waitsAt(t)
		l.leave(errEnough)
		return func() {}
	}},
	"in line, one vote is kept": {3, false, func(t *testing.T, l *leaver) func() {
		l.waitsWithAVote(t, l.ctx)
		l.leave(errEnough)
		return func() {}
	}},
	"the vote has come that it stood in line for": {3, false, func(t *testing.T, l *leaver) func() {
		l.waitsWithAVote(t, l.whenItHas(0, 1))
		locktest.MustUnlock(t, l.held[0])
		return func() {}
	}},
	"in the next round, with two votes": {5, true, func(t *testing.T, l *leaver) func() {
		l.waitsWithAVote(t, l.ctx)
		var gates []*redistest.Gate
		for _, i := range l.alive[2:] {
			gates = append(gates, l.proxies[i].HoldRequest(locktest.ScriptOn(Vote)))
		}
		locktest.MustUnlock(t, l.held[0])
		for _, gate := range gates {
			gate.Wait(t)
		}
		l.leave(errEnough)
		return func() {
			for _, gate := range gates {
				gate.Release()
			}
		}
	}},
	"a majority is there, and Lock has not returned": {3, false, func(t *testing.T, l *leaver) func() {
		gate := l.proxies[1].HoldReply(locktest.ScriptOn(Vote))
		last := func() {}
		if len(l.alive) == 3 {
			last = l.proxies[2].HoldReply(locktest.ScriptOn(Vote)).Release
		}
		l.lock(l.whenItHas(0, 1))
		gate.Wait(t)
		redistest.Eventually(t, locktest.Patience, "the first is held", func() bool { return l.Managers[0].Stats().Held == 1 })
		gate.Release()
		return last
	}},
}

// lock calls Lock, once.
func (l *leaver) lock(ctx context.Context) {
	go func() {
		lease, err := l.Lock(ctx)
		if err == nil {
			err = errors.Join(errors.New("it was granted"), lease.Unlock(context.Background()))
		}
		l.failed <- err
	}()
}

// withhold has the leaver ask members whose requests or replies are withheld, and leave. The others have given
// their votes.
func (l *leaver) withhold(t *testing.T, hold func(*redistest.Proxy, redistest.Match) *redistest.Gate, members []int) (release func()) {
	var gates []*redistest.Gate
	for _, i := range members {
		gates = append(gates, hold(l.proxies[i], locktest.ScriptOn(Vote)))
	}
	l.lock(l.ctx)
	for _, gate := range gates {
		gate.Wait(t)
	}
	for _, i := range l.alive {
		if !slices.Contains(members, i) {
			redistest.Eventually(t, locktest.Patience, "a vote is held", func() bool { return l.Managers[i].Stats().Held == 1 })
		}
	}
	l.leave(errEnough)
	return func() {
		for _, gate := range gates {
			gate.Release()
		}
	}
}

// waitsWithAVote has the rival hold all members but the first, and the leaver come so far that it stands in line at
// the second and keeps the vote of the first.
func (l *leaver) waitsWithAVote(t *testing.T, ctx context.Context) {
	for _, i := range l.alive[1:] {
		l.held = append(l.held, locktest.MustLock(t, l.locks(l.rival.Managers[i])))
	}
	for _, p := range l.proxies { // how long a vote is kept depends on how long members take to answer
		p.Delay(150*time.Millisecond, 0)
	}
	l.lock(ctx)
	redistest.Eventually(t, locktest.Patience, "it waits with a vote", func() bool {
		info := locktest.Inspected(t, l.rival.Managers[1], Vote)
		return info.Waiters == 1 && l.Managers[0].Stats().Held == 1
	})
	for _, p := range l.proxies {
		p.Delay(0, 0)
	}
}

// whenItHas returns the leaver's context, which ends when Lock looks at it and has the votes of some members.
func (l *leaver) whenItHas(members ...int) context.Context {
	return lookedAt{l.ctx, func() {
		if !slices.ContainsFunc(members, func(i int) bool { return l.Managers[i].Stats().Held == 0 }) {
			l.leave(errEnough)
		}
	}}
}

// lookedAt is a context that calls look before it says whether it has ended.
type lookedAt struct {
	context.Context
	look func()
}

func (c lookedAt) Err() error {
	c.look()
	return c.Context.Err()
}

// AC-81: a caller whose context ends is told at once, whatever the members do, and leaves nothing behind: no vote, no place
// in a queue, no key without TTL. Others get on.
func TestRedlock_ContextEndsInEachPhase(t *testing.T) {
	for kind, of := range sides {
		for name, phase := range leaving {
			for _, stopped := range []bool{false, true} {
				if !stopped && kind != "mutex" {
					continue // what a kind does differently, it does with one stopped as well
				}
				t.Run(kind+", "+name+map[bool]string{false: "", true: ", one is stopped"}[stopped], redistest.Worlds(func(t *testing.T) {
					l := newLeaver(t, phase.members, of, rivalOf(kind))
					took := time.Duration(1<<63 - 1)
					for range 3 { // a busy machine may be slow once
						took = min(took, l.comesAndLeaves(t, phase.until, phase.silent, stopped))
						if t.Failed() || took < leavesWithin {
							break
						}
					}
					if took >= leavesWithin {
						t.Errorf("Lock returned %v after its context had ended", took)
					}
				}))
			}
		}
	}
}

// leavesWithin is much less than the second after which a request is given up that no member answers.
const leavesWithin = 400 * time.Millisecond

func newLeaver(t *testing.T, members int, of, rival Side) *leaver {
	t.Helper()
	l := &leaver{all: Servers(t, members), locks: rival, failed: make(chan error, 1)}
	l.Candidate, l.proxies = l.all.candidateVia(t, of)
	l.rival = l.all.CandidateFor(t, rival)
	return l
}

// comesAndLeaves returns how long Lock took to return when its context had ended.
func (l *leaver) comesAndLeaves(t *testing.T, until func(*testing.T, *leaver) func(), silent, stopped bool) time.Duration {
	l.all.greet(t, l.Candidate)
	l.all.greet(t, l.rival)
	l.alive = nil
	for i := range l.all {
		l.alive = append(l.alive, i)
	}
	if last := len(l.all) - 1; stopped {
		l.alive = l.alive[:last]
		l.all[last].Pause()
		defer l.all[last].Resume()
	}
	l.ctx, l.leave = context.WithCancelCause(t.Context())
	defer l.leave(nil)
	left := make(chan time.Time, 1)
	context.AfterFunc(l.ctx, func() { left <- time.Now() })
	after := until(t, l)
	err := redistest.Next(t, l.failed, "it goes on")
	took := time.Since(<-left)
	silent = silent || !testing.Short() // members of a busy machine can be as late
	if !errors.Is(err, holdfast.ErrNotAcquired) && !(silent && errors.Is(err, holdfast.ErrUnavailable)) {
		t.Errorf("%v, silent %v", err, silent)
	}
	locktest.WantErr(t, err, errEnough, nil)
	locktest.WantErr(t, err, context.Canceled, nil)
	for _, i := range l.alive {
		l.all[i].RequireTTLs(t)
	}
	for _, lease := range l.held {
		_ = lease.Unlock(context.Background()) // the phase may have done it
	}
	l.held = nil
	locktest.MustUnlock(t, locktest.MustLock(t, l.rival)) // while the phase still withholds what it does
	after()
	if stopped {
		l.all[len(l.all)-1].Resume()
	}
	l.idle(t)
	l.rival.idle(t)
	l.all.clean(t)
	for _, srv := range l.all {
		srv.RequireTTLs(t)
	}
	return took
}
