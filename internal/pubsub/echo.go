package pubsub

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// A server that has left its cluster answers PING and confirms SUBSCRIBE, as does a proxy that forwards no message. So the way of
// messages is judged by a message. When a request has found what a message should have told, the process sends one to itself,
// an echo, by the server that keeps the lock. If it does not come back, the session ends, and the sessions after it
// are silent: none of their channels is live until an echo has come back. A silent session that brings none ends as one whose channels
// Redis denies.

const (
	// echoSoon is how long an echo may take where the round trip is short.
	echoSoon = 500 * time.Millisecond
	// echoesApart is how far apart two echoes of a session are at least that is not silent.
	echoesApart = time.Second
)

var errUnheard = errors.New("a message of the process to itself did not arrive")

// Echo returns a message that is to be published on channel, and an empty one if none is.
func (s *Subscriber) Echo(channel string) (message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, now := s.topics[channel], time.Now()
	if t == nil || !t.live && !t.silent || t.home.echo != "" || t.live && now.Sub(t.home.asked) < echoesApart {
		return ""
	}
	h := t.home
	// Redisson's waiters hear it too. They take it for a number that has no meaning.
	h.asked, h.echo, h.echoOn = now, strconv.FormatInt(-now.UnixNano(), 10), channel
	return h.echo
}

// Published is called when the server has published an echo or has not. It is to arrive within three round trips, but half a second is
// always in time. heard is how many clients have heard it, and below 0 if that is not known.
func (s *Subscriber) Published(channel, message string, ok bool, heard int64, roundTrip time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[channel]
	if t == nil || t.home == nil || t.home.echo != message {
		return
	}
	h := t.home
	switch {
	case heard == 0 && ok:
		h.endLocked(errUnheard)
	case !ok && !s.silentLocked(h.master):
		h.echo = ""
	default:
		time.AfterFunc(max(echoSoon, 3*roundTrip), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if h.echo == message {
				h.endLocked(errUnheard)
			}
		})
	}
}

// silentLocked reports whether the sessions of master have to show that messages arrive.
func (s *Subscriber) silentLocked(master *redis.Client) bool {
	p := s.pauses[master]
	return p != nil && p.silent
}

// returned reports whether a message is the echo that h waits for.
func (h *session) returned(message string) bool {
	h.s.mu.Lock()
	if h.echo == "" || h.echo != message {
		h.s.mu.Unlock()
		return false
	}
	h.echo = ""
	var confirmed []string
	if h.s.silentLocked(h.master) {
		h.s.pauses[h.master].silent = false
		confirmed = h.unprovenLocked()
	}
	h.s.mu.Unlock()
	for _, channel := range confirmed {
		for _, l := range h.confirmed(channel) {
			l.Subscribed()
		}
	}
	return true
}

// unprovenLocked returns the channels that are confirmed and not live.
func (h *session) unprovenLocked() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(h.s.topics)), func(channel string) bool {
		t := h.topicLocked(channel)
		return t == nil || !t.silent
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
