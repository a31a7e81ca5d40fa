package pubsub

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// session is one pub/sub connection, from its first SUBSCRIBE to its end: of all plain
// channels, or of the sharded ones that one master of a cluster has.
//
// Its goroutine, run, is the only one that calls into go-redis's PubSub, whose
// methods block under a mutex for as long as a dial takes; all other callers change the
// topics and nudge it. A second goroutine reads. go-redis does not notice a connection
// that has gone silent, so a third party, a timer, ends a session in which nothing was
// heard for pingEvery + pongWithin.
type session struct {
	s      *Subscriber
	master *redis.Client // of sharded channels; nil: plain ones
	nudge  chan struct{} // buffered: topics changed
	node   *redis.Client // of a cluster, to which it is connected, before that the one to avoid; confined to run, then to ended

	// The following is guarded by Subscriber.mu.

	topics   int           // how many have it as their home
	wanted   []string      // channels to subscribe to; a topic may have gone since
	deserted []departure   // topics that lost their last listener, and may have another now
	denied   []string      // channels that Redis has denied, which go-redis takes for subscribed
	sent     []sent        // commands without a reply so far, the oldest first
	over     error         // why it is to end; nil: it is not
	within   time.Duration // it is doubted: a pong has to come so soon; 0: it is not
	since    time.Time     // of the first confirmation, or of the first echo if it was silent; zero: there was none
	silent   bool          // no echo has come back since one did not; see Subscriber.Echo
	asked    time.Time     // when the last echo was asked for
}

const (
	// pingEvery is how often a session is asked for a sign of life, and pongWithin how
	// long that may take. A session that was quiet for both together is over; until then
	// its waiters poll.
	pingEvery  = 3 * time.Second
	pongWithin = 2 * time.Second
	// pongSoon is the same for a session that is doubted, where the round trip is short.
	pongSoon = 500 * time.Millisecond
	// linger is how long a channel stays subscribed after its last waiter, so that a
	// lock under contention does not subscribe for every wait.
	linger = 250 * time.Millisecond
	// idle is how long the connection stays open without any channel.
	idle = 5 * time.Second
	// soundAfter is how long a session has to last for the next one to begin without a pause:
	// longer than any pause is.
	soundAfter = 2 * time.Second
)

func newSession(s *Subscriber, master *redis.Client) *session {
	return &session{s: s, master: master, nudge: make(chan struct{}, 1)}
}

func (h *session) nudgeLocked() {
	select {
	case h.nudge <- struct{}{}:
	default:
	}
}

// endLocked has the session end.
func (h *session) endLocked(why error) {
	h.over = why
	h.nudgeLocked()
}

func (h *session) run() { h.s.ended(h, h.converse()) }

var (
	errQuiet = errors.New("no reply to PING")
	errMoved = errors.New("server is no longer the master")
)

// converse returns nil when nothing has been left to listen to for a while, else why the
// session broke.
func (h *session) converse() (err error) {
	ctx, cancel := context.WithCancelCause(h.s.ctx)
	ps := h.connect(ctx)
	watch := time.AfterFunc(pingEvery+pongWithin, func() {
		cancel(errQuiet) // frees PubSub's mutex from a dial in progress
		ps.Close()       // wakes the reader
	})
	var reader sync.WaitGroup
	defer func() {
		if cause := context.Cause(ctx); cause != nil {
			err = cause // what follows from it is less telling
		}
		watch.Stop()
		cancel(nil)
		ps.Close()
		reader.Wait()
	}()

	if err := h.synchronize(ctx, ps); err != nil {
		return err
	}
	reader.Go(func() { cancel(h.read(ctx, ps, watch)) })

	pings := time.NewTicker(pingEvery)
	defer pings.Stop()
	tidy := time.NewTimer(linger)
	defer tidy.Stop()
	for empty := (time.Time{}); ; {
		if wait, some := h.untilTidy(); some {
			empty = time.Time{}
			tidy.Reset(wait)
		} else if empty.IsZero() {
			empty = time.Now()
			tidy.Reset(idle)
		} else if time.Since(empty) >= idle && h.s.retire(h) {
			return nil
		}
		switch within, over := h.suspected(); {
		case over != nil:
			return over
		case within > 0:
			watch.Reset(within) // what is heard resets it as well
			if err := h.ping(ctx, ps); err != nil {
				return err
			}
		}
		select {
		case <-h.nudge:
		case <-tidy.C:
		case <-pings.C:
			if err := h.ping(ctx, ps); err != nil {
				return err
			}
			h.prove() // the listener that was asked may be gone
		case <-ctx.Done():
			return nil // the deferred function has the cause
		}
		if err := h.synchronize(ctx, ps); err != nil {
			return err
		}
	}
}

// connect only prepares: go-redis dials with the first command. Through the master's
// own client, because a cluster's would choose a node by the first channel, however often no message arrives there.
func (h *session) connect(ctx context.Context) *redis.PubSub {
	if h.master != nil {
		return bounded(h.master).SSubscribe(ctx)
	}
	if client, ok := h.s.cfg.Client.(*redis.Client); ok {
		return bounded(client).Subscribe(ctx)
	}
	if h.s.cfg.Nodes != nil {
		h.node = h.s.masterBut(ctx, h.node)
	}
	if h.node != nil {
		return bounded(h.node).Subscribe(ctx)
	}
	return h.s.cfg.Client.Subscribe(ctx)
}

// masterBut returns a master of a cluster by which plain channels are to be heard, another one than not; nil: the client is to
// choose a server.
func (s *Subscriber) masterBut(ctx context.Context, not *redis.Client) (node *redis.Client) {
	const enough = 32 // keys, of most masters
	for key := range enough {
		var err error
		if node, err = s.cfg.Nodes.MasterForKey(ctx, strconv.Itoa(key)); err != nil || node != not {
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

// synchronize subscribes to what has become wanted and unsubscribes what no caller has
// wanted for the linger time.
func (h *session) synchronize(ctx context.Context, ps *redis.PubSub) error {
	for _, c := range h.changes() {
		if err := h.send(ctx, ps, c); err != nil {
			return err
		}
	}
	return nil
}

// changes takes what is to be subscribed to and what not any longer, as commands that count as sent.
func (h *session) changes() []sent {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	before := len(h.sent)
	for _, channel := range h.denied {
		h.sent = append(h.sent, sent{unsubscribe, channel})
	}
	h.denied = nil
	for len(h.deserted) > 0 && time.Since(h.deserted[0].at) >= linger {
		d := h.deserted[0]
		h.deserted = h.deserted[1:]
		t := h.topicLocked(d.channel)
		if t == nil {
			continue
		}
		t.tidied = false
		switch { // since that departure a listener may have come, and perhaps left again
		case !t.deserted:
		case time.Since(t.since) < linger:
			h.tidyLaterLocked(d.channel, t)
		case t.echo != "", slices.ContainsFunc(t.listeners, Listener.Relied):
			t.since = time.Now()
			h.tidyLaterLocked(d.channel, t)
		default:
			h.s.dropLocked(d.channel, t)
			h.sent = append(h.sent, sent{unsubscribe, d.channel})
		}
	}
	slices.Sort(h.wanted) // the order in which a map had them is no order
	for _, channel := range h.wanted {
		if h.topicLocked(channel) != nil { // it may have come and gone while a dial took long
			h.sent = append(h.sent, sent{subscribe, channel})
		}
	}
	h.wanted = h.wanted[:0]
	return slices.Clone(h.sent[before:])
}

// untilTidy returns when the next deserted topic is due, and false if there is no
// topic at all.
func (h *session) untilTidy() (wait time.Duration, some bool) {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	if len(h.deserted) > 0 {
		return max(0, linger-time.Since(h.deserted[0].at)), true
	}
	return time.Hour, h.topics > 0
}

// suspected returns once within what time the server has to answer, and why the session is to end, if it is.
func (h *session) suspected() (within time.Duration, over error) {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	within, h.within = h.within, 0
	return within, h.over
}

// topicLocked returns the topic of channel if h is its home.
func (h *session) topicLocked(channel string) *topic {
	if t := h.s.topics[channel]; t != nil && t.home == h {
		return t
	}
	return nil
}

// sent is one command of a session. Redis replies in the order of the commands. Each command has at most one
// channel, so that an error reply, which names none, is about one channel only.
type sent struct {
	command topicCommand
	channel string // of a ping: none
}

type topicCommand uint8

const (
	subscribe topicCommand = iota
	unsubscribe
	ping
)

// send only writes: the reply comes to read.
func (h *session) send(ctx context.Context, ps *redis.PubSub, c sent) error {
	switch {
	case c.command == ping:
		return ps.Ping(ctx)
	case c.command == subscribe && h.master == nil:
		return ps.Subscribe(ctx, c.channel)
	case c.command == subscribe:
		return ps.SSubscribe(ctx, c.channel)
	case h.master == nil:
		return ps.Unsubscribe(ctx, c.channel)
	default:
		return ps.SUnsubscribe(ctx, c.channel)
	}
}

func (h *session) ping(ctx context.Context, ps *redis.PubSub) error {
	c := sent{command: ping}
	h.s.mu.Lock()
	h.sent = append(h.sent, c)
	h.s.mu.Unlock()
	return h.send(ctx, ps, c)
}
