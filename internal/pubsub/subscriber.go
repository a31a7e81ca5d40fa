// Package pubsub hears channels: which listener wants which channel, and which connection has it.
package pubsub

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/journal"
)

// Subscriber listens to channels for a manager. It makes waiting cheap, and correctness never
// depends on it: without it, waiters poll.
//
// Each channel has a home, a session: one for all plain channels; for sharded ones, which
// are in a cluster's slots as keys are, one per master. Its goroutine, run, finds homes for
// channels that have none: new ones, those whose session broke, those whose slot moved.
type Subscriber struct {
	cfg     Config
	nudge   chan struct{} // buffered: there are homeless topics
	ctx     context.Context
	cancel  context.CancelFunc
	done    chan struct{}  // closed when run and all sessions have returned
	doubted atomic.Bool    // a server said that it is a replica, and wrote has had no effect since
	running sync.WaitGroup // sessions

	mu       sync.Mutex // guards the following and the sessions; a leaf in the lock order
	topics   map[string]*topic
	homes    map[*redis.Client]*session // by master; nil: of the plain channels
	pauses   map[*redis.Client]*pause   // by master, after a session that ended
	homeless []string                   // channels; a topic may have gone since
	told     map[string]string          // family of channels -> the one whose denial was logged
	plain    bool                       // no channel is sharded, as cfg says; or it was found out
	found    bool                       // it was, and of the servers of that time
	moving   time.Time                  // when moveLocked last had an effect
	strayed  bool                       // a move was logged since doubted was set: the next ones are the same again
	started  bool
	stopped  bool
}

// Client is the part of a go-redis client that a subscriber uses.
type Client interface {
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
}

// Listener is told what is heard on a channel. Its methods run on the goroutine that
// reads and must not block.
type Listener interface {
	Heard(payload string)
	Subscribed()  // messages are heard from now on; what was published before was missed
	Relied() bool // after its end: the channel must not be left yet. Called with Subscriber.mu
	Denied()      // no message is heard, and none will be until Subscribed is called
	Unproven()    // an echo on the channel is to show that messages arrive; see Subscriber.Echo
}

// Config is what a subscriber needs.
type Config struct {
	Client  Client
	Nodes   command.Cluster // Client, if it is a cluster's; else nil
	Plain   bool            // no channel is sharded
	Insist  bool            // channels are sharded even if the server does not know such
	Journal *journal.Journal
	Lost    func(unheard bool) // is called when a connection is, without a lock; or when no message has come by it
	Closed  func()             // is called when the client is, and no connection can be made; likewise. nil: nothing
}

// New returns a subscriber, which starts nothing before its first channel.
func New(c Config) *Subscriber {
	s := &Subscriber{
		cfg:    c,
		plain:  c.Plain || c.Nodes == nil,
		nudge:  make(chan struct{}, 1),
		done:   make(chan struct{}),
		topics: make(map[string]*topic),
		homes:  make(map[*redis.Client]*session),
		pauses: make(map[*redis.Client]*pause),
		told:   make(map[string]string),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
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
	echo      string        // the message on it that home waits for; empty: none. See Subscriber.Echo
	missing   *pause        // of the session that it was in when that was lost; nil: confirmed since
}

// liveLocked reports whether messages are heard.
func (t *topic) liveLocked() bool { return t.confirmed && !t.home.silent }

// Add registers l for the messages of channel. It does not block. It reports whether
// the channel is subscribed already; otherwise l.subscribed is called when it is, and
// in any case again after every reconnection.
func (s *Subscriber) Add(channel string, l Listener) (live bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	t := s.topics[channel]
	if t == nil {
		t = &topic{}
		s.topics[channel] = t
		s.homeless = append(s.homeless, channel)
		s.nudgeLocked()
	}
	if t.deserted {
		t.deserted, t.listeners = false, nil
	}
	t.listeners = append(t.listeners[:len(t.listeners):len(t.listeners)], l)
	return t.liveLocked()
}

// Remove ends the registration of l. It does not block; calls of l may still come
// for the linger time.
func (s *Subscriber) Remove(channel string, l Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[channel]
	if t == nil || t.deserted || !slices.Contains(t.listeners, l) {
		return
	}
	if len(t.listeners) > 1 { // the reader may be going through the old slice
		t.listeners = slices.DeleteFunc(slices.Clone(t.listeners), func(x Listener) bool { return x == l })
		return
	}
	if t.home == nil && t.denied == 0 {
		delete(s.topics, channel)
		return
	}
	t.deserted, t.since = true, time.Now() // one that is denied stays until it is due: it is not asked for before
	if t.home != nil {
		t.home.tidyLaterLocked(channel, t)
	}
}

// departure is when a topic, which is on the list only once, was left the first time since it
// was last looked at.
type departure struct {
	channel string
	at      time.Time
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

// Live reports whether messages of channel are heard.
func (s *Subscriber) Live(channel string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[channel]
	return t != nil && t.liveLocked()
}

// Denied reports whether Redis has denied channel, and has not confirmed it since; or two sessions in a row have brought no echo.
func (s *Subscriber) Denied(channel string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[channel]
	return t != nil && t.denied > 0
}

// Subscriptions returns how many channels are subscribed or about to be. Those that Redis has denied are not.
func (s *Subscriber) Subscriptions() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.topics {
		if t.denied == 0 {
			n++
		}
	}
	return n
}

// Deserted returns how many channels are to be looked at because they had no listener any more.
func (s *Subscriber) Deserted() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.homes {
		n += len(h.deserted)
	}
	return n
}

// movesApart is how far apart two moves of the master are at least.
const movesApart = time.Second

// Moved is called when a server that was the master says that it is a replica: requests will find
// the new one by a new connection, and so must the messages. Those that replicas pass on would still
// be heard, but the new master would not know that they are.
func (s *Subscriber) Moved() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.doubted.Swap(true) {
		s.strayed = false
	}
	s.moveLocked()
}

// Wrote is called when a server has taken a write for a caller that waits, or holds the lock now. The
// name of the master, or a proxy, may have led to the old one for some time after it was demoted, and
// the new connection there: one that is made now leads to the master.
func (s *Subscriber) Wrote() {
	if !s.doubted.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.homes[nil] == nil || s.moveLocked() { // or the next one is made after this
		s.doubted.Store(false)
	}
}

// moveLocked has plain channels subscribed to by a new connection, unless that was done a moment
// ago: each request is answered READONLY until all connections are new.
func (s *Subscriber) moveLocked() bool {
	h, now := s.homes[nil], time.Now()
	if h == nil || now.Sub(s.moving) < movesApart {
		return false
	}
	s.moving = now
	h.endLocked(errMoved)
	return true
}

// Doubt is called when connections for requests turned out to be dead. Those for messages may be as well:
// each has to answer a PING within three round trips, but half a second is always in time.
func (s *Subscriber) Doubt(roundTrip time.Duration) {
	d := max(pongSoon, 3*roundTrip)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.homes {
		if !h.since.IsZero() { // else it is being made
			h.within = d
			h.nudgeLocked()
		}
	}
}

// Stop ends the goroutines and waits for them, at most until ctx is done.
func (s *Subscriber) Stop(ctx context.Context) error {
	s.mu.Lock()
	s.stopped = true
	started := s.started
	s.mu.Unlock()
	s.cancel()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		clear(s.topics)
	}()
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

// Sharded reports whether the channels of locks are, which are subscribed where their keys are.
func (s *Subscriber) Sharded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.plain
}
