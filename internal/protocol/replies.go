package protocol

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Read makes of the end of a request what its lock is to know.
func (p *Process) Read(x lock.Request, script *command.Script, r command.Reply) lock.Reply {
	switch x := x.(type) {
	case *lock.Try:
		return readAcquire(script, r)
	case *lock.Join:
		return readVerdict(script, r)
	case *lock.Release:
		return p.readRelease(x.Hold, r)
	case *lock.Downgrade:
		return p.readRelease(x.Hold, r)
	case *lock.Keep:
		return readPlaces(x, r)
	case *lock.Question:
		return p.readDemand(x.Hold.Lock, r)
	}
	return unread(r)
}

// unread is the part of an answer that each has. It says nothing yet.
func unread(r command.Reply) lock.Reply {
	return lock.Reply{Outcome: r.Outcome, Sent: r.Sent, Cause: r.Err}
}

// unexpected turns the answer to a request that says nothing into none.
func unexpected(x lock.Reply, value any) lock.Reply {
	if x.Outcome == lock.Answered {
		x.Outcome, x.Cause = lock.Unknown, Unexpected(value)
	}
	return x
}

// readAcquire is for one lock.
func readAcquire(script *command.Script, r command.Reply) lock.Reply {
	token, granted := r.Value.(int64)
	if r.Outcome != lock.Answered || !granted {
		return readVerdict(script, r)
	}
	return readGrant(token, r)
}

func readGrant(token int64, r command.Reply) lock.Reply {
	x := unread(r)
	x.Says, x.Token = lock.Granted, uint64(token)
	if few := r.Unacked; few != nil {
		x.Says, x.Cause = lock.Unacked, few
		if command.IsFinal(few.Err) {
			x.Hopeless = few
		}
	}
	return x
}

// readVerdict is for an answer that is no grant.
func readVerdict(script *command.Script, r command.Reply) lock.Reply {
	x := unread(r)
	if r.Outcome != lock.Answered {
		return hopeless(x, script)
	}
	if !ParseVerdict(r.Value, &x) {
		return unexpected(x, r.Value)
	}
	return x
}

// ReadTogether is for one of several locks of one script.
func ReadTogether(r command.Reply) lock.Reply {
	x := unread(r)
	if r.Outcome != lock.Answered {
		return hopeless(x, MultiAcquire)
	}
	if token, granted := r.Value.(int64); granted {
		return readGrant(token, r)
	}
	if _, _, ok := ParseRefusal(r.Value, &x); !ok {
		return unexpected(x, r.Value)
	}
	return x
}

// hopeless adds the error for a case in which another request is futile.
func hopeless(x lock.Reply, script *command.Script) lock.Reply {
	switch x.Outcome {
	case lock.Barred, lock.Denied, lock.Failed, lock.Shut:
		x.Hopeless = fmt.Errorf("%s: %w", script.Name(), x.Cause)
	}
	return x
}

// readRelease is for releases and downgrades. It looks for the waiter that was granted the lock, whatever else has become of the request.
func (p *Process) readRelease(h *lock.Hold, r command.Reply) lock.Reply {
	x := unread(r)
	granted := false
	if message, ok := r.Value.(string); ok {
		if x.Notice, granted = wire.ParseNotice(message); granted {
			x.Next = p.Knows.ClaimOf(x.Notice)
		}
	}
	if r.Outcome != lock.Answered {
		return x
	}
	n, ok := r.Value.(int64)
	switch {
	case granted, ok && n == ReleaseHandedOver:
		x.Says = lock.HandedOver
	case !ok:
		return unexpected(x, r.Value)
	case n >= 0:
		x.Says, x.Wanted = lock.Done, n > 0 && n > p.Knows.OwnListeners(h.Lock.Keys)
	case n == ReleaseCrowded:
		x.Says = lock.Crowded
	case n == ReleaseStolen:
		x.Says = lock.Stolen
	default:
		x.Says = lock.Gone
	}
	return x
}

func readPlaces(k *lock.Keep, r command.Reply) lock.Reply {
	x := unread(r)
	codes, ok := r.Value.([]any)
	if r.Outcome != lock.Answered || !ok || len(codes) != len(k.Claims) {
		return x
	}
	x.Says, x.Places = lock.Listed, make([]lock.Kept, len(codes))
	for i, code := range codes {
		switch code {
		case int64(KeepDone):
			x.Places[i] = lock.PlaceKept
		case int64(KeepGranted):
			x.Places[i] = lock.PlaceGranted
		default:
			x.Places[i] = lock.PlaceLost
		}
	}
	return x
}

func (p *Process) readDemand(l *lock.Lock, r command.Reply) lock.Reply {
	x := unread(r)
	var waiting, listeners int64
	x.Heard = -1
	if n, ok := r.Value.([]any); ok && len(n) == 3 {
		waiting, _ = n[0].(int64)
		listeners, _ = n[1].(int64)
		x.Heard, _ = n[2].(int64)
	}
	x.Says, x.Wanted = lock.Listed, waiting > 0 || listeners > p.Knows.OwnListeners(l.Keys)
	return x
}

// ParseOwners reads of the reply of inspect.lua who owns the lock, and whether as readers. Of a free one it returns nil.
func ParseOwners(value any) (owners []string, read, ok bool) {
	list, _ := value.([]any)
	if len(list) != infoFields {
		return nil, false, false
	}
	ttl, ok1 := list[1].(int64)
	holders, ok2 := list[7].([]any)
	if !ok1 || !ok2 || len(holders)%3 != 0 {
		return nil, false, false
	}
	if list[0] == "free" || list[0] == "other" || ttl == 0 {
		return nil, false, true
	}
	owners = []string{}
	for at := range slices.Chunk(holders, 3) {
		field, _ := at[0].(string)
		owner, _ := strings.CutSuffix(field, ":write")
		owners = append(owners, owner)
	}
	return owners, list[0] == "read", true
}

// Unexpected is the error of an answer that no script gives: it comes from something in between.
func Unexpected(answer any) error {
	return fmt.Errorf("unexpected reply %s", command.LegibleText(fmt.Sprint(answer)))
}
