package pubsub

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// topic is one channel and who listens to it: mostly one; a mutex and a fair lock of one
// name share their channel. It is guarded by Subscriber.mu.
type topic struct {
	listeners []Listener    // never empty: the last one hears what comes while the topic lingers
	home      *session      // nil: homeless
	due       time.Time     // homeless: when to look for a home
	left      *redis.Client // homeless: the master that has given its slot away; nil: none
	deserted  bool          // the last listener has left
	since     time.Time     // when; or when left
	denied    time.Duration // homeless for so long because Redis has denied it; 0: not since it was confirmed
	shut      time.Duration // it will be homeless for so long if its confirmation is missing once more
	tidied    bool          // home has it on its list of those to look at
	live      bool          // confirmed in this session, which is not silent
	silent    bool          // confirmed in this session, which is
	missing   *pause        // of the session that it was in when that was lost; nil: confirmed since
}

// departure is when a topic, which is on the list only once, was left the first time since it
// was last looked at.
type departure struct {
	channel string
	at      time.Time
}

// topicLocked returns the topic of channel if h is its home.
func (h *session) topicLocked(channel string) *topic {
	if t := h.s.topics[channel]; t != nil && t.home == h {
		return t
	}
	return nil
}

// tidyLaterLocked has a topic without listeners looked at when its linger time is over.
func (h *session) tidyLaterLocked(channel string, t *topic) {
	if t.tidied {
		return // it is looked at before that, and then again
	}
	t.tidied = true
	h.deserted = append(h.deserted, departure{channel, t.since})
	if len(h.deserted) == 1 {
		h.nudgeLocked()
	}
}

// evictLocked takes a topic out of its session; a new home is looked for when due.
func (s *Subscriber) evictLocked(channel string, t *topic, due time.Time) {
	if t.home.echoOn == channel {
		t.home.echo = ""
	}
	if t.deserted && t.denied == 0 {
		s.dropLocked(channel, t)
		return
	}
	t.home.topics--
	t.home, t.live, t.silent, t.tidied, t.due = nil, false, false, false, due
	s.homeless = append(s.homeless, channel)
}

// dropLocked ends a topic that has a home.
func (s *Subscriber) dropLocked(channel string, t *topic) {
	t.home.topics--
	delete(s.topics, channel)
}

// shutOutLocked returns how long a topic stays without a session because its confirmation was missing. A connection is made
// anew for it at once, and then less and less often: the other channels are not heard meanwhile.
func (t *topic) shutOutLocked() time.Duration {
	now := t.shut
	t.shut = min(max(deniedFirst, 2*t.shut), deniedMost)
	return now
}
