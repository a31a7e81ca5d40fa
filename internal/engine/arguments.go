package engine

import (
	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/validity"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// What a lock's requests mean, as keys and arguments of scripts. What an undisturbed request does not need is left out: each argument
// costs Redis about a quarter of a microsecond.

func acquireScript(k Kind) *command.Script {
	if k.RW() {
		return protocol.RWAcquire
	}
	return protocol.LockAcquire
}

func renewScript(k Kind) *command.Script {
	if k == ReadKind {
		return protocol.RenewRead
	}
	return protocol.Renew
}

func releaseScript(k Kind) *command.Script {
	if k.RW() {
		return protocol.RWRelease
	}
	return protocol.LockRelease
}

// id is the owner id, which Redis knows h by. It is not kept: of the memory of a held lock it would be a tenth.
func (eng *Engine) id(h *lock.Hold) string {
	return wire.OwnerID(eng.owners, h.Number, h.Kind == WriteKind)
}

// tail is what the owner id ends with, behind the engine's prefix.
func tail(h *lock.Hold) string { return wire.OwnerID("", h.Number, h.Kind == WriteKind) }

// right names the key that the read hold h ends with.
func (eng *Engine) right(h *lock.Hold) string {
	return wire.ReadRight(h.Keys.Lock.(string), eng.id(h))
}

// fairChannel is where Redisson tells a fair waiter that it is next.
func (eng *Engine) fairChannel(h *lock.Hold) string {
	return wire.FairChannel(h.Keys.Channel.(string), eng.id(h))
}

// offer is the argument of the release scripts that says how to grant the lock to the next waiter.
func (eng *Engine) offer(h *lock.Hold) any {
	if h.Turn == 0 {
		return termsOf(h.Terms).offer
	}
	return protocol.Offer(validity.Milliseconds(h.Terms.Claim), int(h.Turn)+1, eng.counted)
}

// withKeys begins the arguments of a script for h with its keys, in the room of a slice. The order is that of all
// scripts that take one hold; what only some calls need stands last: the tombstones, and the fencing counter.
func (eng *Engine) withKeys(h *lock.Hold, room []any, script *command.Script, tombstones bool) []any {
	keys := h.Keys
	args := append(script.Begin(room), keys.Lock, keys.Queue, keys.Deadlines)
	if h.Kind == ReadKind {
		args = append(args, eng.right(h))
	}
	if tombstones || h.Terms.Fencing {
		args = append(args, keys.Tombstones)
	}
	if h.Terms.Fencing {
		args = append(args, keys.Token)
	}
	return command.CountKeys(args)
}

func (eng *Engine) acquireArgs(room []any, t *lock.Try) []any {
	h, terms := t.Hold, termsOf(t.Hold.Terms)
	wait := terms.waits[waitNot]
	if t.Stands {
		switch {
		case t.Again && t.Deaf:
			wait = terms.waits[waitAgainDeaf]
		case t.Again:
			wait = terms.waits[waitAgain]
		case t.Deaf:
			wait = terms.waits[waitDeaf]
		default:
			wait = terms.waits[waitNew]
		}
	}
	args := append(eng.withKeys(h, room, acquireScript(h.Kind), true), eng.id(h), terms.ms, wait)
	if h.Terms.Fencing {
		args = append(args, h.Tokens, world{eng}.TokenSeen(h.Keys))
	}
	return args
}

// releaseArgs builds the request that gives up a hold, leaves it taken for a while, or gives up several claims.
func (eng *Engine) releaseArgs(room []any, r *lock.Release) (*command.Script, []any) {
	h := r.Hold
	switch {
	case r.Claims != nil:
		return protocol.Leave, eng.leaveArgs(r)
	case r.Rest > 0:
		return eng.stayArgs(room, r)
	}
	givenUp, script := r.Bury || r.Queued, releaseScript(h.Kind)
	args := append(eng.withKeys(h, room, script, givenUp), eng.id(h), eng.Publish, h.Keys.Channel, eng.offer(h))
	switch {
	case r.Bury:
		args = append(args, lock.Burial.Milliseconds())
	case givenUp:
		args = append(args, 0)
	}
	return script, args
}

func (eng *Engine) leaveArgs(r *lock.Release) []any {
	args := eng.withKeys(r.Hold, make([]any, 0, 13+len(r.Claims)), protocol.Leave, true)
	args = append(args, eng.Publish, eng.offer(r.Hold), lock.Burial.Milliseconds(), r.Late, eng.owners)
	for _, h := range r.Claims {
		args = append(args, tail(h))
	}
	return args
}

func (eng *Engine) stayArgs(room []any, r *lock.Release) (*command.Script, []any) {
	h, script := r.Hold, protocol.LockStay
	if h.Kind.RW() {
		script = protocol.RWStay
	}
	args := append(script.Begin(room), h.Keys.Lock, h.Keys.Queue, h.Keys.Deadlines, h.Keys.Tombstones)
	if h.Kind == ReadKind {
		args = append(args, eng.right(h), wire.ReadRight(h.Keys.Lock.(string), wire.OwnerID(eng.owners, r.Stand, false)))
	}
	args = command.CountKeys(args)
	buried := int64(0)
	if r.Bury {
		buried = lock.Burial.Milliseconds()
	}
	return script, append(args, eng.id(h), wire.OwnerID(eng.owners, r.Stand, h.Kind == WriteKind), validity.Milliseconds(r.Rest), eng.Publish, h.Keys.Channel, buried)
}

func (eng *Engine) downgradeArgs(room []any, d *lock.Downgrade) (*command.Script, []any) {
	script := protocol.RWDowngrade
	return script, append(eng.withKeys(d.Reader, room, script, true), eng.id(d.Reader), eng.Publish, eng.offer(d.Hold), validity.Milliseconds(d.TTL))
}

func (eng *Engine) joinArgs(j *lock.Join) (*command.Script, []any) {
	k, place := j.Of().Keys(), protocol.NewPlace
	if j.Back {
		place = protocol.SamePlace
	}
	args := make([]any, 0, 6+len(j.Tries))
	args = append(args, k.Lock, k.Queue, k.Deadlines, k.Tombstones, eng.stand(place, j.Deaf), eng.owners)
	for _, t := range j.Tries {
		args = append(args, tail(t.Hold))
	}
	return protocol.Join, protocol.Join.Args(4, args...)
}

func (eng *Engine) keepArgs(r *lock.Keep) (*command.Script, []any) {
	k := r.Of().Keys()
	args := make([]any, 0, 5+len(r.Claims))
	args = append(args, k.Lock, k.Queue, k.Deadlines, eng.stand(protocol.SamePlace, r.Deaf), eng.owners)
	for _, h := range r.Claims {
		args = append(args, tail(h))
	}
	return protocol.Keep, protocol.Keep.Args(3, args...)
}

func (eng *Engine) demandArgs(q *lock.Question) (*command.Script, []any) {
	k := q.Hold.Keys
	return protocol.Demand, protocol.Demand.Args(1, k.Queue, eng.Publish, k.Channel)
}
