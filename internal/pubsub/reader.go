package pubsub

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/command"
)

// read passes on what arrives until the connection breaks, or an answer is an error that may not last, such
// as MOVED. An error that says that a command is denied ends nothing: go-redis keeps the connection, and the
// other channels are heard. It must not block: Redis drops a client that does not read.
func (h *session) read(ctx context.Context, ps *redis.PubSub, watch *time.Timer) error {
	for {
		msg, err := receive(ctx, ps)
		if err != nil && !h.deny(err) {
			// go-redis may have reconnected by itself, and then asked for sharded channels of
			// several slots at once, in vain. A new session is simpler to reason
			// about: its confirmations are the only sign that anything was missed.
			return err
		}
		watch.Reset(pingEvery + pongWithin)
		if err := h.take(msg); err != nil {
			return err
		}
	}
}

// take does what a message asks for. It returns an error if a reply is missing.
func (h *session) take(msg any) error {
	switch msg := msg.(type) {
	case *redis.Pong:
		return h.answered(sent{command: ping})
	case *redis.Subscription:
		switch msg.Kind {
		case "subscribe", "ssubscribe":
			if err := h.answered(sent{subscribe, msg.Channel}); err != nil {
				return err
			}
			for _, l := range h.confirmed(msg.Channel) {
				l.Subscribed()
			}
			h.prove()
		case "unsubscribe":
			return h.answered(sent{unsubscribe, msg.Channel})
		case "sunsubscribe":
			h.left(msg.Channel)
		}
	case *redis.Message:
		if h.returned(msg.Channel, msg.Payload) {
			break
		}
		for _, l := range h.listeners(msg.Channel) {
			l.Heard(msg.Payload)
		}
		// A caller that has just been granted a lock goes on before this goroutine asks the kernel
		// whether there is more: 2 to 5 % of a remote hand-off.
		runtime.Gosched()
	}
	return nil
}

// receive is ps.Receive. go-redis takes it for granted that a list is a message of Redis, and panics if something between
// the client and Redis sends another one.
func receive(ctx context.Context, ps *redis.PubSub) (msg any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errStrange, p)
		}
	}()
	msg, err = ps.Receive(ctx)
	if command.IsGarbled(err) || errors.Is(err, redis.Nil) {
		err = fmt.Errorf("%w: %w", errStrange, err)
	}
	return msg, err
}

// confirmed returns the listeners that learn by it that messages are heard.
func (h *session) confirmed(channel string) []Listener {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	t := h.topicLocked(channel)
	if t == nil {
		return nil
	}
	t.shut, t.confirmed = 0, true
	if h.silent {
		return nil
	}
	return h.heardLocked(channel, t)
}

// heardLocked is called when a channel is live.
func (h *session) heardLocked(channel string, t *topic) []Listener {
	if h.since.IsZero() {
		h.since = time.Now()
	}
	h.s.restoredLocked(h, t)
	h.s.permitLocked(channel, t)
	return t.listeners
}

func (h *session) listeners(channel string) []Listener {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	if t := h.topicLocked(channel); t != nil {
		return t.listeners
	}
	return nil
}

// left is called when a sharded channel is not subscribed any more: because the session asked for it, or
// because its slot has gone to another master.
func (h *session) left(channel string) {
	s := h.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(h.sent) > 0 && h.sent[0] == (sent{unsubscribe, channel}) {
		h.sent = h.sent[1:]
		return
	}
	if t := h.topicLocked(channel); t != nil {
		now := time.Now()
		s.evictLocked(channel, t, now)
		t.left, t.since = h.master, now
		s.nudgeLocked()
	}
}

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
	var told []Listener
	if c.command == subscribe {
		h.denied = append(h.denied, c.channel)
		h.nudgeLocked()
		if t := h.topicLocked(c.channel); t != nil {
			told = s.denyLocked(c.channel, t, err)
			s.nudgeLocked()
		}
	}
	s.mu.Unlock()
	tellDenied(told)
	return true
}
