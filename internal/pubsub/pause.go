package pubsub

import (
	"errors"
	"log/slog"
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
	if unheard {
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
	var denials []denial
	for channel, t := range s.topics {
		switch {
		case t.home != h:
		case denied:
			denials = append(denials, s.denyLocked(channel, t, !unheard))
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
	for _, d := range denials {
		s.announce(d, err)
	}
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
			s.journal.Say(slog.LevelInfo, "holdfast: pub/sub connection restored", "after", time.Since(p.lost))
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
