package pubsub

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/journal"
)

// deaf returns a subscriber with a session of plain channels, neither of which runs, and a topic that
// has its home there.
func deaf(t *testing.T) (*Subscriber, *session, *topic) {
	s := New(Config{Plain: true, Journal: journal.New(slog.New(slog.DiscardHandler)), Lost: func(bool) {}})
	t.Cleanup(s.cancel)
	s.started = true // by itself it does nothing
	h := newSession(s, nil)
	s.homes[nil] = h
	s.Add("a", make(listening, 1))
	s.houseLocked("a", s.topics["a"], nil)
	return s, h, s.topics["a"]
}

// end ends h as a broken connection does, and has it begin again. It returns the pause that there would be between.
func end(s *Subscriber, h *session, topic *topic) time.Duration {
	now := time.Now()
	s.ended(h, io.EOF)
	pause := topic.due.Sub(now)
	s.homes[nil] = h
	s.houseLocked("a", topic, nil)
	return pause
}

// endOften is end so often that the pauses are as long as they get.
func endOften(s *Subscriber, h *session, topic *topic) (pause time.Duration) {
	for range 20 {
		pause = end(s, h, topic)
	}
	return pause
}

// Pauses between connections grow, and begin anew behind one that has lasted: else each loss would cost
// a second once there have been a few, however long ago.
func TestSubscriber_PausesBeginAnew(t *testing.T) {
	s, h, topic := deaf(t)
	if pause := endOften(s, h, topic); pause < 400*time.Millisecond {
		t.Errorf("a pause of %v behind 20 failures", pause)
	}
	h.since = time.Now().Add(-2 * soundAfter)
	if pause := end(s, h, topic); pause > 200*time.Millisecond {
		t.Errorf("a pause of %v behind a session that has lasted", pause)
	}
}

// A channel that comes during a pause waits for its end like the others: with many short waits the pauses
// would be none.
func TestSubscriber_NewChannelsKeepThePause(t *testing.T) {
	s, h, topic := deaf(t)
	endOften(s, h, topic) // so that the pause is not over by itself
	s.ended(h, io.EOF)
	s.Remove("a", topic.listeners[0])
	s.Add("b", make(listening, 1))
	wait := s.settle()
	if s.homes[nil] != nil || wait <= 0 || wait > time.Until(s.pauses[nil].until)+time.Second {
		t.Errorf("a session %v; it looks again in %v", s.homes[nil], wait)
	}
	if due := s.topics["b"].due; !due.Equal(s.pauses[nil].until) {
		t.Errorf("due at %v, the pause ends at %v", due, s.pauses[nil].until)
	}
}

// listening is told when a channel is heard.
type listening chan struct{}

func (l listening) Heard(string) {}
func (l listening) Subscribed()  { l <- struct{}{} }
func (l listening) Relied() bool { return false }
func (l listening) Unproven()    {}

// someNodes is a cluster's client that knows no master.
type someNodes struct{}

func (someNodes) MasterForKey(context.Context, string) (*redis.Client, error) { return nil, io.EOF }
func (someNodes) ReloadState(context.Context)                                 {}

// unknownCommand is a reply.
type unknownCommand struct{}

func (unknownCommand) Error() string { return "ERR unknown command 'ssubscribe'" }
func (unknownCommand) RedisError()   {}

// A server without sharded channels is not thought to be so for ever: a connection that ends may be the
// beginning of an upgrade.
func TestSubscriber_TriesShardedChannelsAgain(t *testing.T) {
	s := New(Config{Nodes: someNodes{}, Journal: journal.New(slog.New(slog.DiscardHandler)), Lost: func(bool) {}})
	t.Cleanup(s.cancel)
	s.started = true // by itself it does nothing
	end := func(master *redis.Client, err error) (sharded bool) {
		h := newSession(s, master)
		s.homes[master] = h
		s.ended(h, err)
		return s.Sharded()
	}
	if end(new(redis.Client), unknownCommand{}) {
		t.Error("sharded channels where the server has none")
	}
	if !end(nil, io.EOF) {
		t.Error("not tried again after the next connection")
	}
}

// A topic without listeners is not subscribed to again by the next session, which would not end that.
func TestSubscriber_DesertedEndWithTheSession(t *testing.T) {
	s, h, topic := deaf(t)
	s.Remove("a", topic.listeners[0])
	s.ended(h, io.EOF)
	if n := s.Subscriptions(); n != 0 {
		t.Errorf("%d subscriptions", n)
	}
}

// A session that breaks when it has just been retired takes nothing away from the one that came after it.
func TestSubscriber_EndBehindTheNextSession(t *testing.T) {
	s, next, topic := deaf(t)
	s.ended(newSession(s, nil), io.EOF)
	if s.homes[nil] != next || topic.home != next || len(s.pauses) != 0 {
		t.Error("the next session is not known any more, or waits")
	}
}
