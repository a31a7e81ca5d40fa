package holdfast

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/redis/go-redis/v9"
)

// subscriber is the one pub/sub connection of a manager. It makes waiting cheap and
// is never needed for it to be correct: without it, waiters poll.
//
// Its goroutine, run, is the only one that calls into go-redis's PubSub, whose
// methods block under a mutex for as long as a dial takes; everybody else changes the
// topics and nudges it. A second goroutine per connection reads. go-redis does not
// notice a connection that has gone silent, so a third party, a timer, ends a session
// in which nothing was heard for pingEvery + pongWithin.
type subscriber struct {
	client topicClient
	log    *slog.Logger
	stats  *counters
	nudge  chan struct{} // buffered: topics changed
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{} // closed when run has returned

	mu       sync.Mutex // guards the following; a leaf in the lock order
	topics   map[string]*topic
	wanted   []string    // channels to subscribe to; a topic may have gone since
	deserted []departure // topics that lost their listener, the first one first
	started  bool
	stopped  bool
}

// departure is the end of a registration.
type departure struct {
	channel string
	at      time.Time
}

// topicClient is the part of a go-redis client that a subscriber uses.
type topicClient interface {
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
}

// listener is told what is heard on a channel. Its methods run on the goroutine that
// reads and must not block.
type listener interface {
	heard(payload string)
	subscribed() // messages are heard from now on; what was published before was missed
}

// topic is one channel and who listens to it: mostly one; a mutex and a fair lock of one
// name share their channel.
type topic struct {
	listeners []listener // never empty: the last one hears what comes while the topic lingers
	deserted  bool       // the last listener has left
	since     time.Time  // when
	live      bool       // confirmed in this session
}

const (
	// pingEvery is how often a session is asked for a sign of life, and pongWithin how
	// long that may take. A session that was quiet for both together is over; until then
	// its waiters poll.
	pingEvery  = 3 * time.Second
	pongWithin = 2 * time.Second
	// linger is how long a channel stays subscribed after its last waiter, so that a
	// lock under contention does not subscribe for every wait.
	linger = 250 * time.Millisecond
	// idle is how long the connection stays open without any channel.
	idle = 5 * time.Second
	// subscribeChunk bounds the channels of one SUBSCRIBE.
	subscribeChunk = 1000
)

func newSubscriber(client topicClient, log *slog.Logger, stats *counters) *subscriber {
	s := &subscriber{
		client: client,
		log:    log,
		stats:  stats,
		nudge:  make(chan struct{}, 1),
		done:   make(chan struct{}),
		topics: make(map[string]*topic),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// add registers l for the messages of channel. It does not block. It reports whether
// the channel is subscribed already; otherwise l.subscribed is called when it is, and
// in any case again after every reconnection.
func (s *subscriber) add(channel string, l listener) (live bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	t := s.topics[channel]
	if t == nil {
		t = &topic{}
		s.topics[channel] = t
		s.wanted = append(s.wanted, channel)
		s.nudgeLocked()
	}
	if t.deserted {
		t.deserted, t.listeners = false, nil
	}
	t.listeners = append(t.listeners[:len(t.listeners):len(t.listeners)], l)
	return t.live
}

// remove ends the registration of l. It does not block; calls of l may still come
// for the linger time.
func (s *subscriber) remove(channel string, l listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[channel]
	if t == nil || t.deserted || !slices.Contains(t.listeners, l) {
		return
	}
	if len(t.listeners) > 1 { // the reader may be going through the old slice
		t.listeners = slices.DeleteFunc(slices.Clone(t.listeners), func(x listener) bool { return x == l })
		return
	}
	t.deserted, t.since = true, time.Now()
	s.deserted = append(s.deserted, departure{channel, t.since})
	if len(s.deserted) == 1 {
		s.nudgeLocked()
	}
}

// live reports whether messages of channel are heard.
func (s *subscriber) live(channel string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[channel]
	return t != nil && t.live
}

// subscriptions returns how many channels are subscribed or about to be.
func (s *subscriber) subscriptions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.topics)
}

func (s *subscriber) nudgeLocked() {
	if !s.started && !s.stopped {
		s.started = true
		go s.run()
	}
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}

// stop ends the goroutines and waits for them, at most until ctx is done.
func (s *subscriber) stop(ctx context.Context) error {
	s.mu.Lock()
	s.stopped = true
	started := s.started
	s.mu.Unlock()
	s.cancel()
	defer s.forgetAll()
	if !started {
		return nil
	}
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *subscriber) forgetAll() {
	s.mu.Lock()
	clear(s.topics)
	s.mu.Unlock()
}

// run holds sessions, one after the other, while there is anything to listen to.
func (s *subscriber) run() {
	defer close(s.done)
	pauses := newBackOff()
	for {
		for s.subscriptions() == 0 {
			select {
			case <-s.nudge:
			case <-s.ctx.Done():
				return
			}
		}
		err := s.session(pauses)
		if s.ctx.Err() != nil {
			return
		}
		if err == nil {
			continue // nothing to listen to any more
		}
		s.stats.reconnects.Add(1)
		pause := pauses.NextBackOff()
		s.log.Warn("holdfast: no pub/sub connection, polling meanwhile", "error", err, "retry_in", pause)
		select {
		case <-time.After(pause):
		case <-s.ctx.Done():
			return
		}
	}
}

var errQuiet = errors.New("nothing heard, not even a pong")

// session is one connection, from the first SUBSCRIBE to its end: nil when nothing has
// been left to listen to for a while, else why it broke.
func (s *subscriber) session(pauses *backoff.ExponentialBackOff) (err error) {
	ctx, cancel := context.WithCancelCause(s.ctx)
	ps := s.client.Subscribe(ctx)
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
		s.deafen()
	}()

	s.begin()
	if err := s.synchronize(ctx, ps); err != nil {
		return err
	}
	reader.Go(func() { cancel(s.read(ctx, ps, watch, pauses)) })

	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	tidy := time.NewTimer(linger)
	defer tidy.Stop()
	for empty := (time.Time{}); ; {
		if wait, some := s.untilTidy(); some {
			empty = time.Time{}
			tidy.Reset(wait)
		} else if empty.IsZero() {
			empty = time.Now()
			tidy.Reset(idle)
		} else if time.Since(empty) >= idle {
			return nil
		}
		select {
		case <-s.nudge:
		case <-tidy.C:
		case <-ping.C:
			if err := ps.Ping(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil // the deferred function has the cause
		}
		if err := s.synchronize(ctx, ps); err != nil {
			return err
		}
	}
}

// deafen records that nothing is heard any more.
func (s *subscriber) deafen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.topics {
		t.live = false
	}
}

// begin makes all topics wanted: a new connection has no subscriptions.
func (s *subscriber) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted, s.deserted = s.wanted[:0], s.deserted[:0]
	for channel, t := range s.topics {
		if t.deserted {
			delete(s.topics, channel)
			continue
		}
		s.wanted = append(s.wanted, channel)
	}
}

// synchronize subscribes to what has become wanted and unsubscribes what nobody has
// wanted for the linger time.
func (s *subscriber) synchronize(ctx context.Context, ps *redis.PubSub) error {
	var add, drop []string
	s.mu.Lock()
	for len(s.deserted) > 0 && time.Since(s.deserted[0].at) >= linger {
		d := s.deserted[0]
		s.deserted = s.deserted[1:]
		// Somebody may have come, and gone again later, since that departure.
		if t := s.topics[d.channel]; t != nil && t.deserted && t.since.Equal(d.at) {
			delete(s.topics, d.channel)
			drop = append(drop, d.channel)
		}
	}
	for _, channel := range s.wanted {
		if s.topics[channel] != nil { // it may have come and gone while a dial took long
			add = append(add, channel)
		}
	}
	s.wanted = s.wanted[:0]
	s.mu.Unlock()
	if len(drop) > 0 { // an UNSUBSCRIBE without names would drop everything
		if err := ps.Unsubscribe(ctx, drop...); err != nil {
			return err
		}
	}
	for len(add) > 0 {
		n := min(subscribeChunk, len(add))
		if err := ps.Subscribe(ctx, add[:n]...); err != nil {
			return err
		}
		add = add[n:]
	}
	return nil
}

// untilTidy returns when the next deserted topic is due, and false if there is no
// topic at all.
func (s *subscriber) untilTidy() (wait time.Duration, some bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.deserted) > 0 {
		return max(0, linger-time.Since(s.deserted[0].at)), true
	}
	return time.Hour, len(s.topics) > 0
}

// read passes on what arrives until the connection breaks. It must not block: Redis
// drops a client that does not read.
func (s *subscriber) read(ctx context.Context, ps *redis.PubSub, watch *time.Timer, pauses *backoff.ExponentialBackOff) error {
	for {
		msg, err := ps.Receive(ctx)
		if err != nil {
			// go-redis may have reconnected by itself. A session of our own is simpler to
			// reason about: its confirmations are the only sign that anything was missed.
			return err
		}
		watch.Reset(pingEvery + pongWithin)
		switch msg := msg.(type) {
		case *redis.Subscription:
			if msg.Kind == "subscribe" {
				pauses.Reset()
				for _, l := range s.confirmed(msg.Channel) {
					l.subscribed()
				}
			}
		case *redis.Message:
			for _, l := range s.listeners(msg.Channel) {
				l.heard(msg.Payload)
			}
		}
	}
}

func (s *subscriber) confirmed(channel string) []listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[channel]
	if t == nil {
		return nil
	}
	t.live = true
	return t.listeners
}

func (s *subscriber) listeners(channel string) []listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.topics[channel]; t != nil {
		return t.listeners
	}
	return nil
}
