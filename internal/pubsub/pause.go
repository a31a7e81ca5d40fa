package pubsub

import (
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/retry"
)

// pause is the time between two sessions.
type pause struct {
	grows  *retry.Pauses
	until  time.Time
	lost   time.Time     // when the connection was, which the log was told; zero: it was made since, or never
	silent bool          // no echo has come back since one did not
	node   *redis.Client // of a cluster, at which that was; nil: nowhere
}

// pauseLocked returns until when there is to be no new session of master.
func (s *Subscriber) pauseLocked(master *redis.Client) time.Time {
	if p := s.pauses[master]; p != nil {
		return p.until
	}
	return time.Time{}
}

// soundLocked reports whether the session has lasted: a confirmation alone does not say so, one
// channel may be refused each time while others are not.
func (h *session) soundLocked() bool { return !h.since.IsZero() && time.Since(h.since) > soundAfter }

// ended is called at the end of a session; err is nil if it had nothing left to listen
// to.
func (s *Subscriber) ended(h *session, err error) {
	if err == nil || s.ctx.Err() != nil {
		return
	}
	unknown := s.unsharded(h, err)
	s.mu.Lock()
	if s.homes[h.master] != h { // retired in the same moment
		s.mu.Unlock()
		return
	}
	delete(s.homes, h.master)
	unheard := errors.Is(err, errUnheard)
	denied := h.since.IsZero() && (unheard || !unknown && command.IsDenied(err)) // the connection: a command would not have ended the session
	if h.soundLocked() {
		delete(s.pauses, h.master)
	}
	p := s.pauses[h.master]
	lost := p == nil || !h.since.IsZero() // else it was never made, as the one before
	if p == nil {
		p = &pause{grows: retry.New()}
		s.pauses[h.master] = p
	}
	if p.silent = h.silent; unheard {
		p.silent, p.node = true, h.node
	}
	wait := p.grows.NextBackOff()
	switch {
	case errors.Is(err, redis.ErrClosed) && s.nodes == nil:
		wait = time.Hour // nothing opens it again; of a cluster's client it may be those to one node that are closed
	case unknown:
		s.plain, s.found, wait = true, true, 0
	case h.master == nil && s.found:
		s.plain, s.found = false, false // the servers may have been replaced by newer ones
	}
	p.until = time.Now().Add(wait)
	unconfirmed := h.unconfirmedLocked(err)
	var told []Listener
	for channel, t := range s.topics {
		switch {
		case t.home != h:
		case denied:
			told = append(told, s.denyLocked(channel, t, err)...)
		default:
			t.missing = p
			due := p.until
			if t == unconfirmed {
				due = due.Add(t.shutOutLocked())
			}
			s.evictLocked(channel, t, due)
		}
	}
	switch {
	case unknown:
		s.journal.Say(slog.LevelInfo, "holdfast: server does not support sharded pub/sub; using classic channels")
	case denied: // it is told
	default:
		level := slog.LevelDebug // the same again
		if lost {
			level, p.lost = slog.LevelWarn, time.Now()
		}
		text := "holdfast: pub/sub connection lost; polling until it is restored"
		if unheard {
			text = "holdfast: messages do not arrive; polling until they do"
		}
		s.journal.Say(level, text, "error", command.Legible(err), "retry_in", wait)
	}
	s.nudgeLocked()
	s.mu.Unlock()
	if errors.Is(err, redis.ErrClosed) && s.closed != nil {
		s.closed()
	}
	tellDenied(told)
	if unknown {
		return
	}
	if lost {
		s.lost(unheard)
	}
	if s.nodes != nil {
		s.nodes.ReloadState(s.ctx) // its node may have died, which go-redis does not notice
	}
}

// restoredLocked is called when a channel is confirmed, by h: a connection that was lost is restored, if only in that
// another one has its channels.
func (s *Subscriber) restoredLocked(h *session, t *topic) {
	for _, p := range [...]*pause{t.missing, s.pauses[h.master]} {
		if p != nil && !p.lost.IsZero() {
			s.journal.SayEnd("holdfast: pub/sub connection restored", "after", time.Since(p.lost))
			p.lost = time.Time{}
		}
	}
	t.missing = nil
}

// unsharded reports whether err says that the server has no sharded channels, and h is to be replaced by the
// session of plain ones.
func (s *Subscriber) unsharded(h *session, err error) bool {
	return h.master != nil && !s.insist && redis.HasErrorPrefix(err, "unknown command") // it ignores a leading ERR
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

// deniable is a listener that wants to know that no message is heard, and none will be until subscribed is called.
// The others poll in any case.
type deniable interface{ Denied() }

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
		s.journal.Say(slog.LevelWarn, "holdfast: not permitted to subscribe; polling instead", "channels", family+":*", "error", command.Legible(err), "retry_in", deniedFirst)
	}
	return tell
}

// tellDenied tells listeners, without a lock, that no message will come.
func tellDenied(all []Listener) {
	for _, l := range all {
		if l, ok := l.(deniable); ok {
			l.Denied()
		}
	}
}

// permitLocked is called when Redis has confirmed a channel.
func (s *Subscriber) permitLocked(channel string, t *topic) {
	family := familyOf(channel)
	first, told := s.told[family]
	if told && (t.denied > 0 || first == channel) { // a right may be for some channels of a family only
		delete(s.told, family)
		s.journal.SayEnd("holdfast: permitted to subscribe now", "channels", family+":*")
	}
	t.denied = 0
}

// familyOf returns what the channels of one purpose begin with: inboxes, or what Redisson publishes about one kind of
// lock. The log tells once of a family, however many locks there are.
func familyOf(channel string) string {
	family, _, _ := strings.Cut(channel, ":")
	return family
}
