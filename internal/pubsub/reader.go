package pubsub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
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
		listeners, proven := h.heard(msg.Channel, msg.Payload)
		for _, l := range listeners {
			l.Heard(msg.Payload)
		}
		for _, l := range proven {
			l.Subscribed()
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
	if err != nil && (command.IsGarbled(err) || errors.Is(err, redis.Nil)) {
		err = fmt.Errorf("%w: %w", errStrange, err)
	}
	return msg, err
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

// restoredLocked is called when a channel is confirmed, by h: a connection that was lost is restored, if only in that
// another one has its channels.
func (s *Subscriber) restoredLocked(h *session, t *topic) {
	for _, p := range [...]*pause{t.missing, s.pauses[h.master]} {
		if p != nil && !p.lost.IsZero() {
			s.cfg.Journal.SayEnd("holdfast: pub/sub connection restored", "after", time.Since(p.lost))
			p.lost = time.Time{}
		}
	}
	t.missing = nil
}

// heard returns the listeners of a message, or, if it is the echo that h waits for, those that learn by it that messages are heard.
func (h *session) heard(channel, message string) (listeners, proven []Listener) {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	t := h.topicLocked(channel)
	switch {
	case t == nil:
		return nil, nil
	case t.echo == "" || t.echo != message:
		return t.listeners, nil
	}
	t.echo = ""
	for _, channel := range h.unprovenLocked() {
		proven = append(proven, h.heardLocked(channel, h.s.topics[channel])...)
	}
	h.silent = false
	return nil, proven
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

// A server may deny SUBSCRIBE, or some of the channels: an ACL does, and a server whose administrator has renamed
// the command. That does not pass by itself, so waiters poll meanwhile as if no message came, and the subscriber asks for
// the channel again only now and then. A channel that is denied is homeless; its topic says for how long,
// and outlives its listeners until then.

const (
	// deniedFirst and deniedMost are the first and the longest pause before a channel is asked for again
	// that was denied. Each pause is twice as long as the one before.
	deniedFirst = time.Second
	deniedMost  = 30 * time.Second
)

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
	for _, l := range told {
		l.Denied()
	}
	return true
}

// denyLocked takes a topic that Redis has denied out of its session, or one that is not heard: that is told already. It says once of
// a family of channels that they are denied, and returns whom to tell, once until the channel is confirmed.
func (s *Subscriber) denyLocked(channel string, t *topic, err error) (tell []Listener) {
	if t.denied == 0 {
		tell = t.listeners
	}
	t.denied = min(max(deniedFirst, 2*t.denied), deniedMost)
	s.evictLocked(channel, t, time.Now().Add(t.denied))
	family := familyOf(channel)
	if _, told := s.told[family]; !told && !errors.Is(err, errUnheard) {
		s.told[family] = channel
		s.cfg.Journal.Say(slog.LevelWarn, "holdfast: not permitted to subscribe; polling instead", "channels", family+":*", "error", command.Legible(err), "retry_in", deniedFirst)
	}
	return tell
}

// permitLocked is called when Redis has confirmed a channel.
func (s *Subscriber) permitLocked(channel string, t *topic) {
	family := familyOf(channel)
	first, told := s.told[family]
	if told && (t.denied > 0 || first == channel) { // a right may be for some channels of a family only
		delete(s.told, family)
		s.cfg.Journal.SayEnd("holdfast: permitted to subscribe now", "channels", family+":*")
	}
	t.denied = 0
}

// familyOf returns what the channels of one purpose begin with: inboxes, or what Redisson publishes about one kind of
// lock. The log tells once of a family, however many locks there are.
func familyOf(channel string) string {
	family, _, _ := strings.Cut(channel, ":")
	return family
}

// A server that has left its cluster answers PING and confirms SUBSCRIBE, as does a proxy that forwards no message. So the way of
// messages is judged by a message. When a request has found what a message should have told, the process sends one to itself,
// an echo, by the server that keeps the lock. If it does not come back, the session ends, and the sessions after it
// are silent: none of their channels is live until an echo has come back. A silent session that brings none ends as one whose channels
// Redis denies.

const (
	// echoSoon is how long an echo may take where the round trip is short.
	echoSoon = 500 * time.Millisecond
	// echoesApart is how far apart two echoes of a session are at least.
	echoesApart = time.Second
)

var errUnheard = errors.New("a message of the process to itself did not arrive")

// Echo returns a message that is to be published on channel, and an empty one if none is.
func (s *Subscriber) Echo(channel string) (message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, now := s.topics[channel], time.Now()
	if t == nil || !t.confirmed || t.echo != "" || now.Sub(t.home.asked) < echoesApart {
		return ""
	}
	// Redisson's waiters hear it too. They take it for a number that has no meaning.
	t.home.asked, t.echo = now, strconv.FormatInt(-now.UnixNano(), 10)
	return t.echo
}

// Published is called when the server has published an echo or has not. It is to arrive within three round trips, but half a second is
// always in time. heard is how many clients have heard it, and below 0 if it was not published.
func (s *Subscriber) Published(channel, message string, heard int64, roundTrip time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[channel]
	if t == nil || t.echo != message {
		return
	}
	h := t.home
	switch {
	case heard == 0:
		h.endLocked(errUnheard)
	case heard < 0 && !h.silent:
		t.echo = ""
	default:
		time.AfterFunc(max(echoSoon, 3*roundTrip), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if t.echo == message {
				h.endLocked(errUnheard)
			}
		})
	}
}

// unprovenLocked returns the channels that are confirmed and not live.
func (h *session) unprovenLocked() []string {
	if !h.silent {
		return nil
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(h.s.topics)), func(channel string) bool {
		t := h.topicLocked(channel)
		return t == nil || !t.confirmed
	})
}

// prove has listeners ask for an echo if h is silent.
func (h *session) prove() {
	h.s.mu.Lock()
	var all []Listener
	for _, channel := range h.unprovenLocked() {
		all = append(all, h.s.topics[channel].listeners[0])
	}
	h.s.mu.Unlock()
	for _, l := range all {
		l.Unproven()
	}
}
