package engine

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
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
	waits [5]any        // how to wait, see lock_acquire.lua
	offer any           // how to grant the lock to the next waiter if this hold was no such grant, see lock_release.lua
}

// Indices of terms.waits. A deaf process hears no inbox.
const (
	waitNot = iota
	waitNew
	waitDeaf
	waitAgain
	waitAgainDeaf
)

// deafMark is what a deaf process adds to its patience.
const deafMark = 0.5

// Prepare completes terms that have been checked.
func (eng *Engine) Prepare(c *Terms) {
	c.claim = min(claimTTL, c.TTL)
	c.ms = validity.Milliseconds(c.TTL)
	claim, patience := validity.Milliseconds(c.claim), float64(validity.Milliseconds(eng.patience))
	for i, p := range [...]float64{0, patience, patience + deafMark, -patience, -patience - deafMark} {
		c.waits[i] = fmt.Sprintf("%.1f %d %s %s", p, claim, eng.counted, eng.Publish)
	}
	c.offer = fmt.Sprintf("%d 1 %s", claim, eng.counted)
}
