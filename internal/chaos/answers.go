package chaos

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/judge"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// answerWait is for how long a TryLock waits, at least, for the answer of a holder that may keep the lock.
const answerWait = 100 * time.Millisecond

// recorded is a lease as a client has recorded it.
type recorded struct {
	t            *trial
	deadline, to int64 // to: it ends by Unlock, by its deadline or with its process, whichever is first
}

func (l *recorded) Valid() bool         { return l.t.at < l.to }
func (l *recorded) Ends() time.Duration { return l.t.since(max(l.deadline, l.t.at)) } // the deadline moves on with each renewal

// operations has the events of all operations happen.
func (t *trial) operations() {
	unlocks := map[id]*Op{}
	for _, o := range t.h.Ops {
		if o.Do == Unlock {
			unlocks[id{o.Proc, o.Lease}] = o
		}
	}
	for _, o := range t.h.Ops {
		if o.Do == stall {
			continue
		}
		l, p := t.lock(o.Name), t.procs[o.Proc]
		switch {
		case o.acquires():
			x := &judge.Wait{Process: p, Who: o.String(), Since: t.since(o.Call), Read: o.Shared, Once: o.Do == TryLock || l.kind == nil, Parted: o.Permits > mostPermits}
			t.add(o.Call, l, func() { t.Begins(&l.Lock, x) })
			t.add(o.Return, l, func() {
				l.Returns(x)
				t.acquired(l, p, o, unlocks[id{o.Proc, o.ID}])
				l.returned[o.Proc] = o.Return
			})
		case o.Do == Unlock:
			x := &judge.Wait{Process: p, Who: o.String(), Since: t.since(o.Call), Once: true, Unlocks: true}
			t.add(o.Call, l, func() {
				if c := t.claims[id{o.Proc, o.Lease}]; c != nil {
					t.Ends(c)
				}
				t.Begins(&l.Lock, x)
			})
			t.add(o.Return, l, func() {
				l.Returns(x)
				t.unlocked(l, p, o)
				delete(t.claims, id{o.Proc, o.Lease})
			})
		default: // told
			t.add(o.Return, l, func() { t.heard(l, o) })
		}
	}
}

// odd finds errors that no call may return.
func (t *trial) odd(l *lock, o *Op) {
	if o.Result == Failed && t.Now() > l.Excused {
		t.Fail(&l.Lock, "odd error", "%v", o)
	}
}

// acquired is called when a call that asks for a lock has returned.
func (t *trial) acquired(l *lock, p *party, o, u *Op) {
	t.odd(l, o)
	if l.kind != nil && o.Do == Lock && p.Died == never {
		after := t.since(min(o.Return, t.h.Quiesced)) - t.since(max(o.Call, t.h.Healed)) // healing, whenever it came
		if o.Result == OK {
			t.report.Longest = max(t.report.Longest, after)
		}
		if t.h.Healed != never && after > ttlOf(o.Name)+t.recovery(o.Name) {
			t.Fail(&l.Lock, "starved", "%v waited %v after healing", o, after)
		}
	}
	switch {
	case o.Result == OK:
		t.granted(l, p, o, u)
	case o.Result == Refused && t.Now() > l.Excused && !t.behindOwn(l, p, o):
		t.Refused(&l.Lock, o.String(), t.since(o.Call), o.Return-o.Call < int64(answerWait))
	}
}

// behindOwn reports whether another call of the process wanted the lock meanwhile: it has the answer of the same request, or stands before.
func (t *trial) behindOwn(l *lock, p *party, o *Op) bool {
	return l.returned[o.Proc] >= o.Call || slices.ContainsFunc(l.Waits, func(x *judge.Wait) bool { return x.Process == p && !x.Unlocks })
}

func (t *trial) granted(l *lock, p *party, o, u *Op) {
	to := min(o.Deadline, p.Died)
	if u != nil {
		to = min(u.Call, u.Deadline, p.Died)
	}
	owner := fmt.Sprintf("p%d#%d", o.Proc, o.Chain)
	c := &judge.Claim{Process: p, Who: o.String(), Owner: owner, Write: !o.Shared && o.Permits == 0, Permits: o.Permits, Locks: []*judge.Lock{&l.Lock}, Lease: &recorded{t, o.Deadline, to}, Shell: o}
	t.stands(l, p, o, u)
	t.Granted(c)
	t.claims[id{o.Proc, o.ID}] = c
	if l.kind == nil || !l.kind.Fenced {
		return
	}
	owners, again := t.tokens[owner]
	switch again = again && o.Chain != o.ID; {
	case o.Token == 0:
		t.Fail(&l.Lock, "token", "%v has none", o)
	case again:
		t.TokenAgain(&l.Lock, o.String(), o.Token, owners)
	default:
		t.Token(&l.Lock, c, o.Token)
		t.tokens[owner] = o.Token
	}
}

// stands takes note of the hold that a lease stands on, if there is only one that it can be. If its process had kept that, it was granted without
// a command.
func (t *trial) stands(l *lock, p *party, o, u *Op) {
	if o.Permits > 0 {
		return
	}
	var on []string
	for _, h := range slices.Concat(l.State.Holders, l.Promised) {
		if p.Owns(&l.Lock, h.ID) && (!l.Sides || strings.HasSuffix(h.ID, ":write") == !o.Shared) && !slices.Contains(on, h.ID) {
			on = append(on, h.ID)
		}
	}
	if len(on) != 1 {
		return
	}
	over := t.since(never)
	if u != nil {
		over = t.since(u.Return)
	}
	if before := l.used[on[0]]; before != 0 && wire.Lingers(on[0]) && t.since(o.Call) > before {
		t.report.TakenUp++
	}
	l.used[on[0]] = max(l.used[on[0]], over)
}

// unlocked is called when an Unlock has returned.
func (t *trial) unlocked(l *lock, p *party, o *Op) {
	t.odd(l, o)
	c := t.claims[id{o.Proc, o.Lease}]
	if c == nil {
		return
	}
	a := c.Shell.(*Op)
	switch {
	case o.Result == OK && o.Call > o.Deadline+int64(time.Millisecond):
		t.Hidden(&l.Lock, c.Who, fmt.Errorf("its deadline was %v ago", time.Duration(o.Call-o.Deadline)))
	case o.Result != Lost || t.Now() <= l.Excused:
	case o.Detail == maxHold:
		if a.Limit == 0 || o.Return < a.Limit {
			t.Fail(&l.Lock, "false loss", "before its limit: %s by %v", c.Who, o)
		}
	default:
		x := judge.Loss{Deadline: o.Detail == string(holdfast.LostDeadline), Valid: o.Return < o.Deadline, Trouble: a.Fixed || t.caused(o)}
		held := slices.ContainsFunc(l.State.Holders, func(h judge.Holder) bool { return p.Owns(&l.Lock, h.ID) && h.Since <= c.Granted })
		x.Deleted = o.Return >= o.Deadline || !held && t.caused(o)
		t.Lost(&l.Lock, c.Who, x, fmt.Errorf("%v", o))
	}
}

// harmless are the faults that must not cost a holder its lease: a renewal is repeated in time.
var harmless = map[string]bool{"kill connections": true, "kill subscriptions": true, "flush scripts": true, "swallow a renewal's reply": true}

// caused reports whether something was wrong, with the process, the server or the lock, when the lease
// should have been renewed that u found to have ended.
func (t *trial) caused(u *Op) bool {
	lease := ttlOf(u.Name)
	from, to := min(u.Deadline, u.Return)-int64(lease)-int64(recovery(lease)), max(u.Deadline, u.Return)
	return slices.ContainsFunc(slices.Concat(t.h.Faults, t.h.Stalls), func(f Fault) bool {
		return !harmless[f.Kind] && (f.Name == "" && (f.Proc == u.Proc || f.Proc < 0) || f.Name == u.Name) && f.Start <= to && f.End >= from
	})
}

// heard is called when a holder was told of the end of its lease.
func (t *trial) heard(l *lock, o *Op) {
	if slices.ContainsFunc(slices.Concat(t.h.Faults, t.h.Stalls), func(f Fault) bool {
		return f.standstill() && f.Proc == o.Proc && f.Start <= o.Return && f.End >= o.Call // else it is told whatever the network does
	}) {
		return
	}
	late := time.Duration(o.Return - o.Call)
	t.report.Late = max(t.report.Late, late)
	t.Told(&l.Lock, o.String(), late, toldBound)
}
