package engine

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/validity"
)

// Terms are what the options of a lock add up to.
type Terms struct {
	lock.Terms
	Acks *command.Acks // that a grant waits for, the same for all locks of an Engine; nil: none

	// Arguments of scripts, boxed for argument lists; set by Engine.Prepare.
	ms    any    // TTL in milliseconds
	waits [5]any // how to wait, see protocol.Wait
	offer any    // how to grant the lock to the next waiter if this hold was no such grant, see protocol.Offer
}

// NewTerms are those of a lock that is renewed, and has no other options.
func NewTerms(ttl time.Duration) (c Terms) {
	c.TTL = ttl
	return c
}

// termsOf are those that a lock's are a part of.
func termsOf(t *lock.Terms) *Terms { return t.Shell.(*Terms) }

// Indices of Terms.waits. A deaf process hears no inbox.
const (
	waitNot = iota
	waitNew
	waitDeaf
	waitAgain
	waitAgainDeaf
)

// Prepare completes terms that have been checked.
func (eng *Engine) Prepare(c *Terms) {
	c.Claim, c.Acked, c.Shell = min(lock.MaxClaim, c.TTL), c.Acks != nil, c
	c.ms = validity.Milliseconds(c.TTL)
	offer := protocol.Offer(validity.Milliseconds(c.Claim), 1, eng.counted)
	c.offer = offer
	for i, stand := range [...]string{
		waitNot:       protocol.Stand(protocol.NoPlace, false, 0),
		waitNew:       eng.stand(protocol.NewPlace, false),
		waitDeaf:      eng.stand(protocol.NewPlace, true),
		waitAgain:     eng.stand(protocol.SamePlace, false),
		waitAgainDeaf: eng.stand(protocol.SamePlace, true),
	} {
		c.waits[i] = protocol.Wait(stand, offer, eng.Publish.(string))
	}
}

// stand says how waiters stand in a queue in Redis.
func (eng *Engine) stand(place protocol.Place, deaf bool) string {
	return protocol.Stand(place, deaf, validity.Milliseconds(eng.Patience))
}
