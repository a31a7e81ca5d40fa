package protocol

import (
	"cmp"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/validity"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// What the requests of semaphores have beside those of other kinds.

// permits are the ids of the permits of a claim.
func (p *Process) permits(h *lock.Hold) string {
	return wire.Permits(p.Owners, h.Number, h.Terms.Permits)
}

// permitStay is stay for the permits of a semaphore.
func (p *Process) permitStay(room *command.Room, r *lock.Release) (*command.Script, []any) {
	h := r.Hold
	args := p.withKeys(h, room, PermitStay, true)
	stays := wire.PermitsID(cmp.Or(r.Owners, p.Owners), r.Stand, h.Terms.Permits)
	return PermitStay, append(args, p.id(h), stays, validity.Milliseconds(r.Rest), burial(r))
}
