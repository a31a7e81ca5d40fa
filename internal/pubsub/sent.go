package pubsub

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

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

// send only writes: the reply comes to read.
func (h *session) send(ctx context.Context, ps *redis.PubSub, c sent) error {
	switch {
	case c.command == ping:
		return ps.Ping(ctx)
	case c.command == subscribe && h.master == nil:
		return ps.Subscribe(ctx, c.channel)
	case c.command == subscribe:
		return ps.SSubscribe(ctx, c.channel)
	case h.master == nil:
		return ps.Unsubscribe(ctx, c.channel)
	default:
		return ps.SUnsubscribe(ctx, c.channel)
	}
}

func (h *session) ping(ctx context.Context, ps *redis.PubSub) error {
	c := sent{command: ping}
	h.s.mu.Lock()
	h.sent = append(h.sent, c)
	h.s.mu.Unlock()
	return h.send(ctx, ps, c)
}

// Something between the client and Redis may reply in place of Redis. go-redis drops some of what is no message, and takes
// some for a PONG. The channel of the command would never be heard, or never be left.
var (
	errStrange = errors.New("no message of Redis")
	errMissing = errors.New("no reply to a command, but to the next")
)

// answered is called with a command that Redis has replied to. It returns why the session has to end, if an earlier command
// has no reply or nothing was asked.
func (h *session) answered(c sent) error {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	switch i := slices.Index(h.sent, c); {
	case i == 0:
		h.sent = h.sent[1:]
	case i > 0:
		return errMissing
	case c.command == ping:
		return fmt.Errorf("%w: a PONG without a PING", errStrange)
	} // else go-redis has made a new connection by itself, and subscribes to all channels again
	return nil
}

// unconfirmedLocked returns the channel whose confirmation is missing, if that is why h has ended with err; nil: none.
func (h *session) unconfirmedLocked(err error) *topic {
	if len(h.sent) == 0 || h.sent[0].command != subscribe || !errors.Is(err, errMissing) && !errors.Is(err, errStrange) {
		return nil
	}
	return h.topicLocked(h.sent[0].channel)
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
			d = s.denyLocked(c.channel, t, true)
			s.nudgeLocked()
		}
	}
	s.mu.Unlock()
	s.announce(d, err)
	return true
}
