package engine

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/validity"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// A lock that is held at least for a time stays taken in Redis when its caller gives it up earlier. Another owner
// id takes the place of the hold's, with a TTL of the rest. No process has or renews that one, so Redis alone ends
// it, whatever becomes of the process. The requests of waiters find that TTL, as that of any other owner, and are
// sent again when it is over. The next waiter in the queue, which may know of a longer TTL, gets a message.
//
// Rejected alternative: the TTL of the hold itself is changed. A renewal that is under way at that moment would set it to
// the lease again, and a late copy of the acquire too.

// stay is for how long a hold that is given up at now stays taken; 0: it does not.
func (h *hold) stay(now time.Time) time.Duration {
	if !h.stays || h.cfg.AtLeast == 0 {
		return 0
	}
	rest := h.cfg.AtLeast - (now.Sub(h.entry.engine.Epoch) - h.tenure) // it is never passed on, so that is since its grant
	if rest < time.Millisecond {
		return 0
	}
	return rest
}

// stayArgs builds the request that leaves h taken for rest.
func (h *hold) stayArgs(room []any, rest time.Duration) (*command.Script, []any) {
	eng, script := h.entry.engine, protocol.LockStay
	if h.kind.rw() {
		script = protocol.RWStay
	}
	number := eng.holds.Add(1)
	args := append(script.Begin(room), h.keys.Lock, h.keys.Queue, h.keys.Deadlines, h.keys.Tombstones)
	if h.kind == ReadKind {
		args = append(args, h.right(), wire.ReadRight(h.entry.mapped(), wire.OwnerID(eng.owners, number, false)))
	}
	args = command.CountKeys(args)
	buried := int64(0)
	if h.stray() {
		buried = burial.Milliseconds()
	}
	return script, append(args, h.id(), wire.OwnerID(eng.owners, number, h.kind == WriteKind), validity.Milliseconds(rest), eng.Publish, h.keys.Channel, buried)
}
