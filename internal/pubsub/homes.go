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

// masterHeard returns the master of a cluster by which plain channels are to be heard, another one than that by which the last echo
// was not; nil: the client is to choose a server.
func (s *Subscriber) masterHeard(ctx context.Context) (node *redis.Client) {
	if s.nodes == nil {
		return nil
	}
	s.mu.Lock()
	var not *redis.Client
	if p := s.pauses[nil]; p != nil && p.silent {
		not = p.node
	}
	s.mu.Unlock()
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
