package pubsub

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/wire"
)

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
		s.nodes.ReloadState(s.ctx)
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
	return s.nodes.MasterForKey(s.ctx, channel)
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

// masterBut returns a master of a cluster by which plain channels are to be heard, another one than not; nil: the client is to
// choose a server.
func (s *Subscriber) masterBut(ctx context.Context, not *redis.Client) (node *redis.Client) {
	const enough = 32 // keys, of most masters
	for key := range enough {
		var err error
		if node, err = s.nodes.MasterForKey(ctx, strconv.Itoa(key)); err != nil || node != not {
			break
		}
	}
	return node
}

// bounded returns client with a read timeout: go-redis makes a connection under the PubSub's mutex, so that nothing
// else ends the wait for a reply to its introduction, if the connection dies meanwhile.
func bounded(client *redis.Client) *redis.Client {
	if d := client.Options().ReadTimeout; d > 0 && d <= pingEvery+pongWithin {
		return client
	}
	return client.WithTimeout(pingEvery + pongWithin)
}

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
	confirmed bool          // by home
	echo      string        // the message on it that home waits for; empty: none. See echo.go
	missing   *pause        // of the session that it was in when that was lost; nil: confirmed since
}

// liveLocked reports whether messages are heard.
func (t *topic) liveLocked() bool { return t.confirmed && !t.home.silent }

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

// shutOutLocked returns how long a topic stays without a session because its confirmation was missing. A connection is made
// anew for it at once, and then less and less often: the other channels are not heard meanwhile.
func (t *topic) shutOutLocked() time.Duration {
	now := t.shut
	t.shut = min(max(deniedFirst, 2*t.shut), deniedMost)
	return now
}
