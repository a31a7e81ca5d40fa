package pubsub

import (
	"log/slog"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
)

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

// Denied reports whether Redis has denied channel, and has not confirmed it since; or two sessions in a row have brought no echo.
func (s *Subscriber) Denied(channel string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[channel]
	return t != nil && t.denied > 0
}

// deniable is a listener that wants to know that no message is heard, and none will be until subscribed is called.
// The others poll in any case.
type deniable interface{ Denied() }

// denial is what is to be done without a lock when Redis has denied a channel.
type denial struct {
	channel string
	told    []Listener // that no message will come
	log     bool
}

// denyLocked takes a topic that Redis has denied out of its session, or one that is not heard: that is not logged. The caller passes
// the result to announce after unlocking.
func (s *Subscriber) denyLocked(channel string, t *topic, log bool) denial {
	d := denial{channel: channel}
	if t.denied == 0 {
		d.told = t.listeners
	}
	t.denied = min(max(deniedFirst, 2*t.denied), deniedMost)
	s.evictLocked(channel, t, time.Now().Add(t.denied))
	family := familyOf(channel)
	if _, told := s.told[family]; !told && log {
		s.told[family], d.log = channel, true
	}
	return d
}

// announce tells the log, once of a family of channels, and the listeners, once until the channel is confirmed.
func (s *Subscriber) announce(d denial, err error) {
	if d.log {
		s.journal.Say(slog.LevelWarn, "holdfast: not permitted to subscribe; polling instead", "channels", familyOf(d.channel)+":*", "error", command.Legible(err), "retry_in", deniedFirst)
	}
	for _, l := range d.told {
		if l, ok := l.(deniable); ok {
			l.Denied()
		}
	}
}

// permitLocked is called when Redis has confirmed a channel. It reports whether the log is to tell.
func (s *Subscriber) permitLocked(channel string, t *topic) (untold bool) {
	family := familyOf(channel)
	first, told := s.told[family]
	untold = told && (t.denied > 0 || first == channel) // a right may be for some channels of a family only
	if untold {
		delete(s.told, family)
	}
	t.denied = 0
	return untold
}

func (s *Subscriber) tellPermitted(channel string) {
	s.journal.Say(slog.LevelInfo, "holdfast: permitted to subscribe now", "channels", familyOf(channel)+":*")
}

// familyOf returns what the channels of one purpose begin with: inboxes, or what Redisson publishes about one kind of
// lock. The log tells once of a family, however many locks there are.
func familyOf(channel string) string {
	family, _, _ := strings.Cut(channel, ":")
	return family
}
