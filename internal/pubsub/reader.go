package pubsub

import (
	"context"
	"errors"
	"fmt"
	"runtime"
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
		case "unsubscribe":
			return h.answered(sent{unsubscribe, msg.Channel})
		case "sunsubscribe":
			h.left(msg.Channel)
		}
	case *redis.Message:
		if h.returned(msg.Payload) {
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

func (h *session) confirmed(channel string) []Listener {
	h.s.mu.Lock()
	t := h.topicLocked(channel)
	if t == nil {
		h.s.mu.Unlock()
		return nil
	}
	t.shut = 0
	if h.s.silentLocked(h.master) {
		t.silent = true
		h.s.mu.Unlock()
		h.prove()
		return nil
	}
	if h.since.IsZero() {
		h.since = time.Now()
	}
	t.live, t.silent = true, false
	h.s.restoredLocked(h, t)
	permitted, all := h.s.permitLocked(channel, t), t.listeners
	h.s.mu.Unlock()
	if permitted {
		h.s.tellPermitted(channel)
	}
	return all
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
