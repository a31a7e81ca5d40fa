package holdfast

import (
	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/validity"
)

// keepRequest is one request for waiters of a fair lock to keep their places in its
// queue. Each process refreshes its own, a hundred per request, three times in the
// patience after which a silent one is dropped; the first of them asks for the lock
// itself now and then, which keeps its place as well.
type keepRequest struct {
	e      *entry
	claims []*hold
	call   command.Call
}

func (e *entry) newKeep(claims []*hold) *command.Call {
	m := e.m
	patience := float64(validity.Milliseconds(m.patience))
	if !m.inbox.live() {
		patience += deafMark
	}
	args := make([]any, 0, 4+len(claims))
	args = append(args, e.keys.Lock, e.keys.Queue, patience, m.owners)
	for _, h := range claims {
		args = append(args, h.tail())
	}
	r := &keepRequest{e: e, claims: claims}
	r.call = command.Call{
		Script:   keepScript,
		Args:     keepScript.Args(2, args...),
		Handler:  r,
		Patience: closePatience, // Overdue has nothing to do: the scheduler asks again
	}
	return &r.call
}

// Replied is called by the executor with the end of the request.
func (r *keepRequest) Replied(_ *command.Call, reply command.Reply) {
	m := r.e.m
	codes, ok := reply.Value.([]any)
	answered := reply.Outcome == command.Answered && ok && len(codes) == len(r.claims)
	for i, h := range r.claims {
		switch {
		case !answered:
			m.scheduler.Retry(&h.item)
		case codes[i] == int64(keepDone):
			m.scheduler.Confirm(&h.item, reply.Sent, m.patience)
		default:
			m.scheduler.Confirm(&h.item, reply.Sent, m.patience)
			r.e.seek(h)
		}
	}
}

// Overdue does nothing: the scheduler hands the claims out again by itself.
func (r *keepRequest) Overdue(*command.Call) {}

// seek asks for the lock for a claim that has no place any more: it has been granted
// and the message was lost, or its process was silent for too long, or waiters of
// Redisson pushed it out; asking brings it the grant or a place at the front.
func (e *entry) seek(h *hold) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h.phase == claimed && h.waiter.Parked() && h.waiter.Value.current == nil {
		e.tryLocked(h.waiter)
	}
}
