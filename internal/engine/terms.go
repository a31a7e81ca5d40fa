package engine

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/validity"
)

// Terms are what the options of a lock add up to. Their values are compared: two
// callers with equal terms can use one hold.
type Terms struct {
	TTL     time.Duration
	Fixed   bool          // not renewed
	MaxHold time.Duration // 0: none
	AtLeast time.Duration // for how long the lock stays taken; 0: until it is given up
	Fencing bool
	Acks    *command.Acks // that a grant waits for, the same for all locks of an Engine; nil: none

	// Arguments of scripts, boxed for argument lists; set by Engine.Prepare.
	claim time.Duration // TTL of a grant to another process
	ms    any           // ttl in milliseconds
	waits [5]any        // how to wait, see protocol.Wait
	offer any           // how to grant the lock to the next waiter if this hold was no such grant, see protocol.Offer
}

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
	c.claim = min(claimTTL, c.TTL)
	c.ms = validity.Milliseconds(c.TTL)
	offer := protocol.Offer(validity.Milliseconds(c.claim), 1, eng.counted)
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
	return protocol.Stand(place, deaf, validity.Milliseconds(eng.patience))
}
