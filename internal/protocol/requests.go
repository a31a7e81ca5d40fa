package protocol

import (
	"cmp"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/validity"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Process is what all requests of a process have in common, and what their replies are compared with.
type Process struct {
	Owners   string        // what all its owner ids begin with
	Publish  any           // the command that announces a release, boxed; see tell in lib/redisson.lua
	Counted  bool          // PUBSUB NUMSUB knows whether an inbox has listeners
	Patience time.Duration // for how long a silent waiter keeps its place
	Knows    Known
}

// Known is what a process knows apart from its locks.
type Known interface {
	TokenSeen(keys *wire.Keys) uint64   // see lock.World
	OwnListeners(keys *wire.Keys) int64 // how many of the clients that hear the lock's channel are this process, as far as the server knows that a script runs on
	ClaimOf(n wire.Notice) *lock.Hold   // the claim that a message is for; nil: none is known to wait, and the message is kept
}

// Terms are what the options of a lock add up to.
type Terms struct {
	lock.Terms
	Idle time.Duration // of a semaphore: for how long Redis keeps one that is not used; 0: forever
	Acks *command.Acks // that a grant waits for, the same for all locks of a process; nil: none

	// Arguments of scripts, boxed for argument lists; set by Process.Prepare.
	ms    any                 // TTL in milliseconds
	waits [len(places)][2]any // how to wait, see Wait: by place, and whether the process hears no inbox
	offer any                 // how to grant the lock to the next waiter if this hold was no such grant, see Offer
}

// TermsOf are those that a lock's are a part of.
func TermsOf(t *lock.Terms) *Terms { return t.Shell.(*Terms) }

// Prepare completes terms that have been checked.
func (p *Process) Prepare(c *Terms) {
	c.Claim, c.Shell = min(lock.MaxClaim, c.TTL), c
	if c.Acks != nil {
		c.AckWithin = c.Acks.Timeout
	}
	c.ms = validity.Milliseconds(c.TTL)
	offer := Offer(validity.Milliseconds(c.Claim), 1, p.Counted)
	c.offer = offer
	for place := range places {
		for i, deaf := range [...]bool{false, true} {
			c.waits[place][i] = Wait(p.stand(lock.Place(place), deaf), offer, p.Publish.(string))
		}
	}
}

// stand says how waiters stand in a queue in Redis.
func (p *Process) stand(place lock.Place, deaf bool) string {
	if place == lock.NoPlace {
		return Stand(place, false, 0)
	}
	return Stand(place, deaf, validity.Milliseconds(p.Patience))
}

// What the requests of locks mean, as keys and arguments of scripts. What an undisturbed request does not need is left out: each argument
// costs Redis about a quarter of a microsecond.

// ID is the owner id, which Redis knows h by. It is not kept: of the memory of a held lock it would be a tenth.
func (p *Process) ID(h *lock.Hold) string { return idOf(p.Owners, h) }

// tail is what that ends with, behind the prefix of the process.
func tail(h *lock.Hold) string { return idOf("", h) }

func idOf(prefix string, h *lock.Hold) string {
	if n := h.Terms.Permits; n > 0 {
		return wire.PermitsID(prefix, h.Number, n)
	}
	return wire.OwnerID(prefix, h.Number, wire.Marks{Lingers: h.Terms.Linger > 0, Wanted: h.Terms.Wanted, Writes: kinds[h.Kind].writes, Value: h.Terms.Value})
}

// right names the key beside the lock's that h ends with.
func (p *Process) right(h *lock.Hold) string {
	if h.Terms.Permits > 0 {
		return wire.PermitSet(h.Lock.Keys.Lock.(string))
	}
	return wire.ReadRight(h.Lock.Keys.Lock.(string), p.ID(h))
}

// FairChannel is where Redisson tells a fair waiter that it is next.
func (p *Process) FairChannel(h *lock.Hold) string {
	return wire.FairChannel(h.Lock.Keys.Channel(), p.ID(h))
}

// offer is the argument of the release scripts that says how to grant the lock to the next waiter.
func (p *Process) offer(h *lock.Hold) any {
	if h.Turn == 0 {
		return TermsOf(h.Terms).offer
	}
	return Offer(validity.Milliseconds(h.Terms.Claim), int(h.Turn)+1, p.Counted)
}

// withKeys begins the arguments of a script for h with its keys, in a room. The order is that of all
// scripts that take one hold; what only some calls need stands last: the tombstones, and the fencing counter.
func (p *Process) withKeys(h *lock.Hold, room *command.Room, script *command.Script, tombstones bool) []any {
	keys := h.Lock.Keys
	args := append(script.Begin(room), keys.Lock, keys.Queue, keys.Deadlines)
	if kinds[h.Kind].right {
		args = append(args, p.right(h))
	}
	if tombstones || h.Terms.Fencing {
		args = append(args, keys.Tombstones)
	}
	if h.Terms.Fencing {
		args = append(args, keys.Token())
	}
	return command.CountKeys(args)
}

// Ask completes the call by which a request is sent. A Keep lapses, because the schedule asks again. So does a Busy, because the
// TryLock's patience makes up for it.
func (p *Process) Ask(c *command.Call, x lock.Request) {
	switch x := x.(type) {
	case *lock.Try:
		c.Acks = TermsOf(x.Hold.Terms).Acks
		c.Script, c.Args = p.Acquire(&c.Room, x)
	case *lock.Release:
		c.Script, c.Args = p.Release(&c.Room, x)
	case *lock.Downgrade:
		c.Script, c.Args = p.Downgrade(&c.Room, x)
	case *lock.Join:
		c.Script, c.Args = p.Join(x)
	case *lock.Keep:
		c.Lapses = true
		c.Script, c.Args = p.Keep(x)
	case *lock.Question:
		c.Script, c.Args = p.Question(x)
	case *lock.Busy:
		c.Lapses = true
		c.Script, c.Args = p.Busy(x)
	}
}

// Acquire is the request of one try, in a room.
func (p *Process) Acquire(room *command.Room, t *lock.Try) (*command.Script, []any) {
	h, terms := t.Hold, TermsOf(t.Hold.Terms)
	deaf := 0
	if t.Session == 0 {
		deaf = 1
	}
	script := kinds[h.Kind].acquire
	args := append(p.withKeys(h, room, script, true), p.ID(h), terms.ms, terms.waits[t.Place][deaf])
	if h.Terms.Fencing {
		args = append(args, h.Tokens, p.Knows.TokenSeen(h.Lock.Keys))
	}
	if h.Terms.Permits > 0 {
		args = append(args, terms.Total, p.permits(h))
		if terms.Idle > 0 {
			args = append(args, validity.Milliseconds(terms.Idle))
		}
	}
	return script, args
}

// Release is the request that gives up a hold, leaves it taken for a while, or gives up several claims.
func (p *Process) Release(room *command.Room, r *lock.Release) (*command.Script, []any) {
	h := r.Hold
	switch {
	case r.Claims != nil:
		return Leave, p.leave(room, r)
	case r.Stay.Rest > 0 && h.Terms.Permits > 0:
		return p.permitStay(room, r)
	case r.Stay.Rest > 0:
		return p.stay(room, r)
	}
	givenUp, script := r.Left != lock.NothingLeft, kinds[h.Kind].release
	args := append(p.withKeys(h, room, script, givenUp), p.ID(h), p.Publish, p.offer(h))
	if h.Terms.Permits > 0 {
		args = append(args, p.permits(h))
	}
	switch r.Left {
	case lock.CopiesLeft:
		args = append(args, lock.Burial.Milliseconds())
	case lock.PlaceLeft:
		args = append(args, 0)
	}
	return script, args
}

func (p *Process) leave(room *command.Room, r *lock.Release) []any {
	args := p.withKeys(r.Hold, room, Leave, true)
	args = append(args, p.Publish, p.offer(r.Hold), lock.Burial.Milliseconds(), r.Late, p.Owners)
	for _, h := range r.Claims {
		args = append(args, tail(h))
	}
	return args
}

func (p *Process) stay(room *command.Room, r *lock.Release) (*command.Script, []any) {
	h := r.Hold
	k := kinds[h.Kind]
	stays := wire.OwnerID(cmp.Or(r.Stay.Owners, p.Owners), r.Stay.Number, wire.Marks{Writes: k.writes})
	args := append(Stay.Begin(room), h.Lock.Keys.Lock, h.Lock.Keys.Queue, h.Lock.Keys.Deadlines, h.Lock.Keys.Tombstones)
	if k.right {
		args = append(args, p.right(h), wire.ReadRight(h.Lock.Keys.Lock.(string), stays))
	}
	args = command.CountKeys(args)
	return Stay, append(args, p.ID(h), stays, validity.Milliseconds(r.Stay.Rest), p.Publish, h.Lock.Keys.Channel(), burial(r))
}

// burial is for how many milliseconds a late acquire is to be refused; 0 where none can be under way.
func burial(r *lock.Release) int64 {
	if r.Left == lock.CopiesLeft {
		return lock.Burial.Milliseconds()
	}
	return 0
}

// Attach is the request that puts h in the place of a ticket.
func (p *Process) Attach(h *lock.Hold, t *wire.Ticket) (*command.Script, []any) {
	k, script := kinds[h.Kind], Attach
	before := wire.OwnerID(t.Giver, t.Number(), wire.Marks{Writes: k.writes})
	args := []any{h.Lock.Keys.Lock, h.Lock.Keys.Queue, h.Lock.Keys.Tombstones}
	if k.right {
		args = append(args, p.right(h))
	}
	switch {
	case t.Permits > 0:
		script, before = PermitAttach, wire.PermitsID(t.Giver, t.Number(), t.Permits)
	case k.right:
		args = append(args, wire.ReadRight(h.Lock.Keys.Lock.(string), before))
	}
	return script, script.Args(len(args), append(args, p.ID(h), TermsOf(h.Terms).ms, before)...)
}

// Downgrade is the request that turns a write hold into a read hold.
func (p *Process) Downgrade(room *command.Room, d *lock.Downgrade) (*command.Script, []any) {
	script := RWDowngrade
	return script, append(p.withKeys(d.Reader, room, script, true), p.ID(d.Reader), p.Publish, p.offer(d.Hold), validity.Milliseconds(d.TTL))
}

// Join is the request that puts waiters into a queue.
func (p *Process) Join(j *lock.Join) (*command.Script, []any) {
	k := j.Lock.Keys
	args := make([]any, 0, 6+len(j.Tries))
	args = append(args, k.Lock, k.Queue, k.Deadlines, k.Tombstones, p.stand(j.Place, j.Session == 0), p.Owners)
	for _, t := range j.Tries {
		args = append(args, tail(t.Hold))
	}
	return Join, Join.Args(4, args...)
}

// Keep is the request that keeps places.
func (p *Process) Keep(r *lock.Keep) (*command.Script, []any) {
	k := r.Lock.Keys
	args := make([]any, 0, 5+len(r.Claims))
	args = append(args, k.Lock, k.Queue, k.Deadlines, p.stand(lock.SamePlace, r.Session == 0), p.Owners)
	for _, h := range r.Claims {
		args = append(args, tail(h))
	}
	return Keep, Keep.Args(3, args...)
}

// Question is the request whether another process waits.
func (p *Process) Question(q *lock.Question) (*command.Script, []any) {
	k := q.Hold.Lock.Keys
	return Demand, Demand.Args(1, k.Queue, p.Publish, k.Channel(), q.Channel, q.Message, p.Owners)
}

// permits are the ids of the permits of a claim.
func (p *Process) permits(h *lock.Hold) string {
	return wire.Permits(p.Owners, h.Number, h.Terms.Permits)
}

// permitStay is stay for the permits of a semaphore.
func (p *Process) permitStay(room *command.Room, r *lock.Release) (*command.Script, []any) {
	h := r.Hold
	args := p.withKeys(h, room, PermitStay, true)
	stays := wire.PermitsID(cmp.Or(r.Stay.Owners, p.Owners), r.Stay.Number, h.Terms.Permits)
	return PermitStay, append(args, p.ID(h), stays, validity.Milliseconds(r.Stay.Rest), burial(r))
}

// Busy is the answer to a TryLock that asks.
func (p *Process) Busy(b *lock.Busy) (*command.Script, []any) {
	inbox, message := wire.BusyFor(b.Asker)
	return Busy, Busy.Args(1, b.Hold.Lock.Keys.Lock, p.ID(b.Hold), inbox, message)
}

// Renew is the request that sets the TTL of holds to at least ttl, by the script that is for all of them (RenewScript).
func (p *Process) Renew(script *command.Script, ttl time.Duration, holds ...*lock.Hold) []any {
	list := make([]any, 0, 2+3*len(holds))
	for _, h := range holds {
		list = append(list, h.Lock.Keys.Lock)
		if kinds[h.Kind].right {
			list = append(list, p.right(h))
		}
	}
	keys := len(list)
	list = append(list, validity.Milliseconds(ttl))
	if script == PermitRenew {
		for _, h := range holds {
			list = append(list, p.permits(h))
		}
		return script.Args(keys, list...)
	}
	list = append(list, p.Owners)
	for _, h := range holds {
		list = append(list, tail(h))
	}
	return script.Args(keys, list...)
}

// AcquireTogether is one request for several locks.
func (p *Process) AcquireTogether(tries []*lock.Try) (*command.Script, []any) {
	args := []any{p.Owners}
	var keys []any
	for _, t := range tries {
		k := t.Hold.Lock.Keys
		keys = append(keys, k.Lock, k.Queue, k.Deadlines, k.Tombstones)
		args = append(args, tail(t.Hold), TermsOf(t.Hold.Terms).ms)
	}
	return MultiAcquire, MultiAcquire.Args(len(keys), append(keys, args...)...)
}
