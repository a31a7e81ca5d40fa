package pubsub

import (
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/wire"
)

const (
	// searchAgain is when a channel whose master is not known is looked for again.
	searchAgain = 20 * time.Millisecond
	// stale is for how long the table of slots is not believed when it names the master
	// that has just given a slot away.
	stale = time.Second
)

func (s *Subscriber) nudgeLocked() {
	if !s.started && !s.stopped {
		s.started = true
		go s.run()
	}
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}

// run finds homes for topics until the subscriber is stopped.
func (s *Subscriber) run() {
	defer close(s.done)
	defer s.running.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.nudge:
		case <-timer.C:
		case <-s.ctx.Done():
			return
		}
		timer.Reset(s.settle())
	}
}

// settle finds homes for the topics that are due, and returns when others will be.
func (s *Subscriber) settle() (wait time.Duration) {
	wait = time.Hour
	outdated := false // the table of slots
	for _, channel := range s.dueTopics(&wait) {
		master, err := s.masterOf(channel)
		s.mu.Lock()
		t, now := s.topics[channel], time.Now()
		switch {
		case t == nil || t.home != nil: // gone, or listed twice
		case err != nil, t.left != nil && t.left == master && now.Sub(t.since) < stale:
			outdated = true
			t.due = now.Add(searchAgain)
			s.homeless = append(s.homeless, channel)
			wait = min(wait, searchAgain)
		case s.homes[master] == nil && now.Before(s.pauseLocked(master)): // it has come since
			t.due = s.pauseLocked(master)
			s.homeless = append(s.homeless, channel)
			wait = min(wait, t.due.Sub(now))
		default:
			s.houseLocked(channel, t, master)
		}
		s.mu.Unlock()
	}
	if outdated {
		s.cfg.Nodes.ReloadState(s.ctx)
	}
	return wait
}

// dueTopics takes the homeless topics whose time has come, and shortens wait to that of
// the next.
func (s *Subscriber) dueTopics(wait *time.Duration) (due []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.homeless = slices.DeleteFunc(s.homeless, func(channel string) bool {
		t := s.topics[channel]
		if t == nil || t.home != nil {
			return true
		}
		left := t.due.Sub(now)
		if left <= 0 && t.deserted {
			delete(s.topics, channel)
			return true
		}
		if left <= 0 {
			due = append(due, channel)
			return true
		}
		*wait = min(*wait, left)
		return false
	})
	return due
}

// masterOf returns whose session is to have a channel; nil: that of the plain ones. An
// inbox is always plain: it has no slot in common with the locks it is about.
func (s *Subscriber) masterOf(channel string) (*redis.Client, error) {
	s.mu.Lock()
	plain := s.plain || wire.IsInbox(channel)
	s.mu.Unlock()
	if plain {
		return nil, nil
	}
	return s.cfg.Nodes.MasterForKey(s.ctx, channel)
}

// houseLocked gives a topic to the session of master, a new one if there is none.
func (s *Subscriber) houseLocked(channel string, t *topic, master *redis.Client) {
	h := s.homes[master]
	if h == nil {
		h = newSession(s, master)
		if p := s.pauses[master]; p != nil {
			h.silent, h.node = p.silent, p.node
		}
		s.homes[master] = h
		s.running.Go(h.run)
	}
	t.home, t.left = h, nil
	h.topics++
	h.wanted = append(h.wanted, channel)
	h.nudgeLocked()
}

// evictLocked takes a topic out of its session; a new home is looked for when due.
func (s *Subscriber) evictLocked(channel string, t *topic, due time.Time) {
	t.echo = ""
	if t.deserted && t.denied == 0 {
		s.dropLocked(channel, t)
		return
	}
	t.home.topics--
	t.home, t.confirmed, t.tidied, t.due = nil, false, false, due
	s.homeless = append(s.homeless, channel)
}

// dropLocked ends a topic that has a home.
func (s *Subscriber) dropLocked(channel string, t *topic) {
	t.home.topics--
	delete(s.topics, channel)
}

// retire ends a session that has nothing to listen to, and reports whether that is so.
func (s *Subscriber) retire(h *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.topics > 0 {
		return false
	}
	delete(s.homes, h.master)
	delete(s.pauses, h.master)
	return true
}

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
	lost := s.newsLocked(h, p, err)
	if p == nil {
		p = &pause{grows: retry.New()}
		s.pauses[h.master] = p
	}
	if p.silent = h.silent; unheard {
		p.silent, p.node = true, h.node
	}
	wait := p.grows.NextBackOff()
	switch {
	case errors.Is(err, redis.ErrClosed) && s.cfg.Nodes == nil:
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
		s.cfg.Journal.Say(slog.LevelInfo, "holdfast: server does not support sharded pub/sub; using classic channels")
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
		s.cfg.Journal.Say(level, text, "error", command.Legible(err), "retry_in", wait)
	}
	s.nudgeLocked()
	s.mu.Unlock()
	if errors.Is(err, redis.ErrClosed) && s.cfg.Closed != nil {
		s.cfg.Closed()
	}
	for _, l := range told {
		l.Denied()
	}
	if unknown {
		return
	}
	if lost {
		s.cfg.Lost(unheard)
	}
	if s.cfg.Nodes != nil {
		s.cfg.Nodes.ReloadState(s.ctx) // its node may have died, which go-redis does not notice
	}
}

// newsLocked reports whether the log is told at warn of the end of h with err, after which there is a pause like p.
func (s *Subscriber) newsLocked(h *session, p *pause, err error) bool {
	switch moved := errors.Is(err, errMoved); {
	case moved && s.strayed: // the log knows that the server is a replica
		return false
	case moved:
		s.strayed = true
	}
	return p == nil || !h.since.IsZero() || s.strayed && p.lost.IsZero() // else it was never made, as the one before
}

// unsharded reports whether err says that the server has no sharded channels, and h is to be replaced by the
// session of plain ones.
func (s *Subscriber) unsharded(h *session, err error) bool {
	return h.master != nil && !s.cfg.Insist && redis.HasErrorPrefix(err, "unknown command") // it ignores a leading ERR
}

// soundLocked reports whether the session has lasted: a confirmation alone does not say so, one
// channel may be refused each time while others are not.
func (h *session) soundLocked() bool { return !h.since.IsZero() && time.Since(h.since) > soundAfter }

// unconfirmedLocked returns the channel whose confirmation is missing, if that is why h has ended with err; nil: none.
func (h *session) unconfirmedLocked(err error) *topic {
	if len(h.sent) == 0 || h.sent[0].command != subscribe || !errors.Is(err, errMissing) && !errors.Is(err, errStrange) {
		return nil
	}
	return h.topicLocked(h.sent[0].channel)
}

// shutOutLocked returns how long a topic stays without a session because its confirmation was missing. A connection is made
// anew for it at once, and then less and less often: the other channels are not heard meanwhile.
func (t *topic) shutOutLocked() time.Duration {
	now := t.shut
	t.shut = min(max(deniedFirst, 2*t.shut), deniedMost)
	return now
}
