package pubsub

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/journal"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// deaf returns a subscriber with a session of plain channels, neither of which runs, and a topic that
// has its home there.
func deaf(t *testing.T) (*Subscriber, *session, *topic) {
	s := New(Config{Plain: true, Journal: journal.New(slog.New(slog.DiscardHandler)), Lost: func(bool) {}})
	t.Cleanup(s.cancel)
	s.started = true // by itself it does nothing
	h := newSession(s, nil)
	s.homes[nil] = h
	s.Add("a", make(ear, 1))
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
	redistest.WantMost(t, end(s, h, topic), 200*time.Millisecond, "a pause of %v behind a session that has lasted")
}

// A channel that comes during a pause waits for its end like the others: with many short waits the pauses
// would be none.
func TestSubscriber_NewChannelsKeepThePause(t *testing.T) {
	s, h, topic := deaf(t)
	endOften(s, h, topic) // so that the pause is not over by itself
	s.ended(h, io.EOF)
	s.Remove("a", topic.listeners[0])
	s.Add("b", make(ear, 1))
	wait := s.settle()
	if s.homes[nil] != nil || wait <= 0 || wait > time.Until(s.pauses[nil].until)+time.Second {
		t.Errorf("a session %v; it looks again in %v", s.homes[nil], wait)
	}
	if due := s.topics["b"].due; !due.Equal(s.pauses[nil].until) {
		t.Errorf("due at %v, the pause ends at %v", due, s.pauses[nil].until)
	}
}

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
	redistest.Want(t, s.Subscriptions(), 0, "%d subscriptions")
}

// A session that breaks when it has just been retired takes nothing away from the one that came after it.
func TestSubscriber_EndBehindTheNextSession(t *testing.T) {
	s, next, topic := deaf(t)
	s.ended(newSession(s, nil), io.EOF)
	if s.homes[nil] != next || topic.home != next || len(s.pauses) != 0 {
		t.Error("the next session is not known any more, or waits")
	}
}

// asked is a listener that counts how often it was asked to prove that messages arrive.
type asked struct{ ear }

func (a asked) Unproven() { a.Heard("prove") }

// SUBSCRIBE and SSUBSCRIBE are confirmed, PING is answered, and no message comes.
func TestEcho_NoMessageArrives(t *testing.T) {
	for name, k := range map[string]channelKind{"plain": {false, 3}, "sharded": {true, 3}} {
		t.Run(name, func(t *testing.T) {
			redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
				p := srv.Proxy(t)
				client := p.Client(t)
				var unheard atomic.Int32
				c := Config{Client: client, Plain: !k.sharded, Journal: journal.New(slog.New(slog.DiscardHandler)), Lost: func(u bool) {
					if u {
						unheard.Add(1)
					}
				}}
				if k.sharded {
					c.Nodes = oneNode{client}
				}
				s := New(c)
				defer s.Stop(context.Background())
				const channel = "redisson_lock__channel:{a}"
				l := asked{make(ear, 100)}
				s.Add(channel, l)
				live := func() bool { return s.Live(channel) }
				prove := func() {
					redistest.Eventually(t, patience, "an echo is sent", func() bool {
						message := s.Echo(channel)
						if message == "" {
							return false
						}
						if k.sharded {
							client.SPublish(context.Background(), channel, message)
						} else {
							client.Publish(context.Background(), channel, message)
						}
						s.Published(channel, message, 1, 0)
						return true
					})
				}
				redistest.Eventually(t, patience, "it is live", live)
				prove()
				redistest.Eventually(t, patience, "the echo comes back", func() bool { return s.Echo(channel) == "" })

				p.Hush(true)
				prove()
				redistest.Eventually(t, patience, "the session is given up", func() bool { return unheard.Load() == 1 })
				if got := <-l.ear; got != "prove" { // of the next session
					t.Errorf("heard %q", got)
				}
				prove()
				redistest.Eventually(t, patience, "the channel counts as denied", func() bool { return s.Denied(channel) })
				if live() || unheard.Load() != 1 {
					t.Errorf("live: %v, %d sessions told of", live(), unheard.Load())
				}
				p.Hush(false)
				prove()
				redistest.Eventually(t, patience, "it is live again", live)
				if s.Denied(channel) {
					t.Error("it is denied")
				}
			})
		})
	}
}

// An echo that no client has heard ends the session at once, and one that does not come back after a while. One that was not sent
// says nothing, but a silent session ends without it.
func TestEcho_Published(t *testing.T) {
	for _, c := range []struct {
		heard  int64
		silent bool
		after  time.Duration // 0: at once; below: never
	}{{0, false, 0}, {1, false, echoSoon}, {-1, false, -1}, {-1, true, echoSoon}} {
		synctest.Test(t, func(t *testing.T) {
			s, h, topic := deaf(t)
			topic.confirmed, h.silent = true, c.silent
			s.Published("a", s.Echo("a"), c.heard, 0)
			if _, over := h.suspected(); (over != nil) != (c.after == 0) {
				t.Errorf("%+v: at once: %v", c, over)
			}
			time.Sleep(echoSoon + 1)
			if _, over := h.suspected(); (over != nil) != (c.after >= 0) {
				t.Errorf("%+v: in the end: %v", c, over)
			}
		})
	}
}
