package protocol

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/validity"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Process is what all requests of a process have in common, and what their replies are compared with.
type Process struct {
	Owners   string        // what all its owner ids begin with
	Publish  any           // the command that announces a release, boxed; see tell in prelude/redisson.lua
	Counted  bool          // PUBSUB NUMSUB knows whether an inbox has listeners
	Patience time.Duration // for how long a silent waiter keeps its place
	Knows    Known
}

// Known is what a process knows apart from its locks.
type Known interface {
	TokenSeen(keys *wire.Keys) uint64   // see lock.World
	OwnListeners(keys *wire.Keys) int64 // likewise
	ClaimOf(n wire.Notice) *lock.Hold   // the claim that a message is for; nil: none is known to wait, and the message is kept
}

// Terms are what the options of a lock add up to.
type Terms struct {
	lock.Terms
	Acks *command.Acks // that a grant waits for, the same for all locks of a process; nil: none

	// Arguments of scripts, boxed for argument lists; set by Process.Prepare.
	ms    any    // TTL in milliseconds
	waits [7]any // how to wait, see Wait
	offer any    // how to grant the lock to the next waiter if this hold was no such grant, see Offer
}

// TermsOf are those that a lock's are a part of.
func TermsOf(t *lock.Terms) *Terms { return t.Shell.(*Terms) }

// Indices of Terms.waits. A deaf process hears no inbox.
const (
	waitNot = iota
	waitNew
	waitDeaf
	waitAgain
	waitAgainDeaf
	waitAsk
	waitAskDeaf
)

// Prepare completes terms that have been checked.
func (p *Process) Prepare(c *Terms) {
	c.Claim, c.Acked, c.Shell = min(lock.MaxClaim, c.TTL), c.Acks != nil, c
	c.ms = validity.Milliseconds(c.TTL)
	offer := Offer(validity.Milliseconds(c.Claim), 1, p.Counted)
	c.offer = offer
	for i, stand := range [...]string{
		waitNot:       Stand(NoPlace, false, 0),
		waitNew:       p.stand(NewPlace, false),
		waitDeaf:      p.stand(NewPlace, true),
		waitAgain:     p.stand(SamePlace, false),
		waitAgainDeaf: p.stand(SamePlace, true),
		waitAsk:       p.stand(AskPlace, false),
		waitAskDeaf:   p.stand(AskPlace, true),
	} {
		c.waits[i] = Wait(stand, offer, p.Publish.(string))
	}
}

// stand says how waiters stand in a queue in Redis.
func (p *Process) stand(place Place, deaf bool) string {
	return Stand(place, deaf, validity.Milliseconds(p.Patience))
}
