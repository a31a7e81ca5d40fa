package pubsub

import (
	"slices"

	"github.com/holdfast-go/holdfast/internal/command"
)

// sent is one command of a session. Redis replies in the order of the commands. Each command has at most one
// channel, so that an error reply, which names none, is about one channel only.
type sent struct {
	command topicCommand
	channel string // of a ping: none
}

type topicCommand uint8

const (
	subscribe topicCommand = iota
	unsubscribe
	ping
)

// answered is called with a command that Redis has replied to.
func (h *session) answered(c sent) {
	h.s.mu.Lock()
	h.answeredLocked(c)
	h.s.mu.Unlock()
}

// answeredLocked forgets a command, and those before it: go-redis has made a new connection by itself if they
// had no reply.
func (h *session) answeredLocked(c sent) {
	if i := slices.Index(h.sent, c); i >= 0 {
		h.sent = h.sent[i+1:]
	}
}

// deny takes err for the reply to the oldest command that has none so far. It reports false if err says anything
// but that the command is denied, or no command is without a reply.
func (h *session) deny(err error) bool {
	s := h.s
	if !command.IsDenied(err) || s.unsharded(h, err) {
		return false
	}
	s.mu.Lock()
	if len(h.sent) == 0 {
		s.mu.Unlock()
		return false
	}
	c := h.sent[0]
	h.sent = h.sent[1:]
	var d denial
	if c.command == subscribe {
		h.denied = append(h.denied, c.channel)
		h.nudgeLocked()
		if t := h.topicLocked(c.channel); t != nil {
			d = s.denyLocked(c.channel, t)
			s.nudgeLocked()
		}
	}
	s.mu.Unlock()
	s.announce(d, err)
	return true
}
