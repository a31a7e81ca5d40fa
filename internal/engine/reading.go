package engine

import (
	"fmt"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/validity"
)

// outcomes are those of package command in the words of package lock.
var outcomes = [...]lock.Outcome{
	command.Answered: lock.Answered,
	command.NotSent:  lock.NotSent,
	command.Refused:  lock.Refused,
	command.Barred:   lock.Barred,
	command.Denied:   lock.Denied,
	command.Failed:   lock.Failed,
	command.Closed:   lock.Shut,
	command.Unknown:  lock.Unknown,
}

// read makes of the end of a request what its lock is to know.
func (s *sent) read(r command.Reply) lock.Reply {
	switch x := s.of.(type) {
	case *lock.Try:
		return readAcquire(x, s.call.Script, r)
	case *lock.Join:
		return readVerdict(s.call.Script, r)
	case *lock.Release:
		return entryOf(x.Of()).engine.readRelease(r)
	case *lock.Downgrade:
		return readDowngrade(r)
	case *lock.Keep:
		return readPlaces(x, r)
	}
	return readDemand(entryOf(s.of.Of()), r)
}

// unread is the part of an answer that each has. It says nothing yet.
func unread(r command.Reply) lock.Reply {
	x := lock.Reply{Outcome: outcomes[r.Outcome], Sent: r.Sent, Cause: r.Err}
	if r.Err == Closed {
		x.Outcome = lock.Unsent
	}
	return x
}

// unexpected turns the answer to a request that says nothing into none.
func unexpected(x lock.Reply, value any) lock.Reply {
	if x.Outcome == lock.Answered {
		x.Outcome, x.Cause = lock.Unknown, Unexpected(value)
	}
	return x
}

// readAcquire is for one lock.
func readAcquire(t *lock.Try, script *command.Script, r command.Reply) lock.Reply {
	token, granted := r.Value.(int64)
	if r.Outcome != command.Answered || !granted {
		return readVerdict(script, r)
	}
	return readGrant(t, token, r)
}

func readGrant(t *lock.Try, token int64, r command.Reply) lock.Reply {
	x := unread(r)
	x.Says, x.Token = lock.Granted, uint64(token)
	if acks := termsOf(t.Hold.Terms).Acks; acks != nil && (r.AckErr != nil || r.Acked < acks.Replicas) {
		x.Says, x.Cause, x.Final = lock.Unacked, &Unacked{acks.Replicas, r.Acked, r.AckErr}, command.IsFinal(r.AckErr)
	}
	return x
}

// readVerdict is for an answer that is no grant.
func readVerdict(script *command.Script, r command.Reply) lock.Reply {
	x := unread(r)
	if r.Outcome != command.Answered {
		return hopeless(x, script)
	}
	v, ok := protocol.ParseVerdict(r.Value)
	if !ok {
		return unexpected(x, r.Value)
	}
	return withVerdict(x, v)
}

// readTogether is for one of several locks of one script.
func readTogether(t *lock.Try, r command.Reply) lock.Reply {
	x := unread(r)
	if r.Outcome != command.Answered {
		return hopeless(x, protocol.MultiAcquire)
	}
	if token, granted := r.Value.(int64); granted {
		return readGrant(t, token, r)
	}
	v, ok := protocol.ParseRefusal(r.Value)
	if !ok {
		return unexpected(x, r.Value)
	}
	return withVerdict(x, v.Verdict)
}

// hopeless adds the error for a case in which another request is futile.
func hopeless(x lock.Reply, script *command.Script) lock.Reply {
	switch x.Outcome {
	case lock.Barred, lock.Denied, lock.Failed, lock.Shut:
		x.Hopeless = fmt.Errorf("%s: %w", script.Name(), x.Cause)
	}
	return x
}

func withVerdict(x lock.Reply, v protocol.Verdict) lock.Reply {
	switch v.Code {
	case protocol.AcquireHeld:
		x.Says, x.TTL, x.Clock, x.Foreign = lock.Held, validity.Duration(v.TTL), v.Clock, v.Foreign
		switch v.State {
		case protocol.StateOpen:
			x.State = lock.LeftOpen
		case protocol.StateCrowded:
			x.State = lock.CrowdedQueue
		}
	case protocol.AcquireKind:
		x.Says, x.Cause = lock.OtherKind, v.Wrong
	default:
		x.Says = lock.Buried
	}
	return x
}

// readRelease looks for the waiter that was granted the lock, whatever else has become of the request.
func (eng *Engine) readRelease(r command.Reply) lock.Reply {
	x := unread(r)
	next, notice, granted := eng.claimOf(r.Value)
	x.Next, x.Notice = next, notice
	if r.Outcome != command.Answered {
		return x
	}
	n, ok := r.Value.(int64)
	switch {
	case granted, ok && n == protocol.ReleaseHandedOver:
		x.Says = lock.HandedOver
	case !ok:
		return unexpected(x, r.Value)
	case n >= 0:
		x.Says, x.Listeners = lock.Done, n
	case n == protocol.ReleaseCrowded:
		x.Says = lock.Crowded
	case n == protocol.ReleaseStolen:
		x.Says = lock.Stolen
	default:
		x.Says = lock.Gone
	}
	return x
}

func readDowngrade(r command.Reply) lock.Reply {
	x := unread(r)
	n, ok := r.Value.(int64)
	switch {
	case r.Outcome != command.Answered:
	case !ok:
		return unexpected(x, r.Value)
	case n == 0:
		x.Says = lock.Done
	case n == protocol.ReleaseStolen:
		x.Says = lock.Stolen
	default:
		x.Says = lock.Gone
	}
	return x
}

func readPlaces(k *lock.Keep, r command.Reply) lock.Reply {
	x := unread(r)
	codes, ok := r.Value.([]any)
	if r.Outcome != command.Answered || !ok || len(codes) != len(k.Claims) {
		return x
	}
	x.Says, x.Places = lock.Listed, make([]lock.Place, len(codes))
	for i, code := range codes {
		switch code {
		case int64(protocol.KeepDone):
			x.Places[i] = lock.PlaceKept
		case int64(protocol.KeepGranted):
			x.Places[i] = lock.PlaceGranted
		default:
			x.Places[i] = lock.PlaceLost
		}
	}
	return x
}

func readDemand(e *entry, r command.Reply) lock.Reply {
	x := unread(r)
	var waiting, listeners int64
	if n, ok := r.Value.([]any); ok && len(n) == 2 {
		waiting, _ = n[0].(int64)
		listeners, _ = n[1].(int64)
	}
	x.Says, x.Wanted = lock.Listed, waiting > 0 || listeners > world{e.engine}.OwnListeners(e.lock.Keys())
	return x
}
