package engine

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/voting"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// What a caller of Lock does between two rounds: it waits in the queue of one member.

const (
	// lookAfter is how often a waiter looks whether it waits in the right place; for the first time
	// after a part of it.
	lookAfter = time.Second
	// keepVotes is for how long a waiter keeps votes of other members, at least: a holder releases
	// all members at the same time, so the one that is waited for is mostly free after a round trip.
	keepVotes = 50 * time.Millisecond
	// shunFor is for how long a member is the last to be waited at, after that was in vain.
	shunFor = 5 * time.Second
)

// wait waits in the queue of the member that a round ended at, and returns its vote, beside those that
// the caller has kept; none if it had better ask all.
func (l *Majority) wait(ctx context.Context, r *round) []*Lease {
	at, kept := l.members[r.at], r.kept
	ctx, leave := context.WithCancel(ctx)
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		defer leave()
		if len(kept) > 0 {
			if !Sleep(ctx, min(max(keepVotes, r.limit), at.Terms.TTL/4, lookAfter)) {
				return
			}
			giveBackAll(kept)
			kept = nil
		}
		var before []string
		for d := lookAfter / 4; Sleep(ctx, d-time.Duration(at.engine.Chance(int64(d/5)))); d = lookAfter {
			right := false
			if before, right = l.look(ctx, r.at, before); !right {
				return
			}
		}
	}()
	vote, _ := at.take(ctx, false, part)
	leave()
	<-looked
	if vote == nil {
		giveBackAll(kept)
		return nil
	}
	return append(kept, vote)
}

// sight is what a waiter sees of a member.
type sight struct {
	member int
	owners string // as owners says
	err    error
}

// free is what owners returns of a member that the caller could have.
const free = ""

// owners returns the owners of a member; none if the caller could have it, as it could beside other readers.
func (h *Lock) owners(ctx context.Context) (string, error) {
	keys := wire.InspectKeys(h.Mapped)
	value, err := h.engine.Ask(ctx, h.Name, Repeatable, protocol.Inspect, protocol.Inspect.Args(len(keys), keys...))
	if err != nil {
		return "", err
	}
	owners, read, ok := protocol.ParseOwners(value)
	switch {
	case !ok:
		return "", NewError(lock.Unavailable, h.Name, protocol.Unexpected(value))
	case owners == nil || read && h.Kind.Shared():
		return free, nil
	}
	slices.Sort(owners)
	return strings.Join(owners, " ") + " ", nil // not nothing, even if it has no owner that can be read
}

// lag returns how long a member takes to answer.
func (h *Lock) lag() time.Duration { return h.engine.Executor.Lag(h.Mapped) }

// look returns the owners of the members, and whether the member at is the right place to wait, where before
// is what an earlier look has seen, nil if it is the first. The place is wrong if the member does not
// answer as the others do, or if a majority is free. It is wrong as well if that member keeps its owner while the others
// get new ones: that owner has no majority.
func (l *Majority) look(ctx context.Context, at int, before []string) (now []string, right bool) {
	ctx, stop := context.WithCancel(ctx)
	var looking sync.WaitGroup
	defer looking.Wait()
	defer stop()
	sights := make(chan sight, len(l.members))
	for i := range l.members {
		looking.Go(func() { // for a second at most, and not beyond ctx
			owners, err := l.members[i].owners(ctx)
			sights <- sight{i, owners, err}
		})
	}
	begun := time.Now()
	seen := make([]voting.Member, len(l.members))
	now = make([]string, len(l.members))
	unknown := func(i int) bool { return seen[i].Answer != voting.Granted }
	for {
		limit, open := time.Duration(0), 0
		for i := range l.members {
			if seen[i].Lag = l.members[i].lag(); seen[i].Answer == voting.Open {
				seen[i].Lag = max(seen[i].Lag, time.Since(begun))
			}
		}
		limit = max(voting.Limit(seen), lookAfter/20) // what is late here only makes the waiter leave
		for _, m := range seen {
			if m.Answer == voting.Open && m.Lag <= limit {
				open++
			}
		}
		if open == 0 {
			break
		}
		select {
		case s := <-sights:
			if seen[s.member].Answer = voting.Granted; s.err != nil {
				seen[s.member].Answer = voting.Failed
			}
			now[s.member] = s.owners
		case <-time.After(lookAfter / 100):
		}
	}
	if unknown(at) || seen[at].Lag > voting.Limit(seen) {
		return now, false
	}
	idle, moved := 0, 0
	for i := range l.members {
		switch {
		case unknown(i):
		case now[i] == free:
			idle++
			moved++
		case i != at && before != nil && now[i] != before[i]:
			moved++
		}
	}
	quorum := l.quorum()
	stays := now[at] != free && before != nil && now[at] == before[at]
	if idle >= quorum || stays && moved >= quorum {
		if now[at] != free {
			l.shun(at)
		}
		return now, false
	}
	return now, true
}

// shun makes a member the last to be waited at, for a while.
func (l *Majority) shun(member int) {
	l.vain[member].Store(int64(time.Since(l.whole.engine.Epoch) + shunFor))
}

func (l *Majority) shunned(member int) bool {
	until := l.vain[member].Load()
	return until != 0 && time.Since(l.whole.engine.Epoch) < time.Duration(until)
}
