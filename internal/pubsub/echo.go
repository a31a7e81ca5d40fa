package pubsub

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"
)

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

// returned reports whether a message is the echo that h waits for.
func (h *session) returned(channel, message string) bool {
	h.s.mu.Lock()
	t := h.topicLocked(channel)
	if t == nil || t.echo == "" || t.echo != message {
		h.s.mu.Unlock()
		return false
	}
	t.echo = ""
	unproven := h.unprovenLocked()
	h.silent = false
	var told []Listener
	for _, channel := range unproven {
		told = append(told, h.heardLocked(channel, h.s.topics[channel])...)
	}
	h.s.mu.Unlock()
	for _, l := range told {
		l.Subscribed()
	}
	return true
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
