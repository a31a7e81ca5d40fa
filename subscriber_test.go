package holdfast

import (
	"io"
	"log/slog"
	"testing"
	"time"
)

// deaf returns a subscriber with a session of plain channels, neither of which runs, and a topic that
// has its home there.
func deaf(t *testing.T) (*subscriber, *session, *topic) {
	s := newSubscriber(nil, nil, PublishClassic, slog.New(slog.DiscardHandler), func() {})
	t.Cleanup(s.cancel)
	s.started = true // by itself it does nothing
	h := newSession(s, nil)
	s.homes[nil] = h
	s.add("a", make(listening, 1))
	s.houseLocked("a", s.topics["a"], nil)
	return s, h, s.topics["a"]
}

// Pauses between connections grow, and begin anew behind one that has lasted: else each loss would cost
// a second once there have been a few, however long ago.
func TestSubscriber_PausesBeginAnew(t *testing.T) {
	s, h, topic := deaf(t)
	lost := func() (pause time.Duration) {
		now := time.Now()
		s.ended(h, io.EOF)
		pause = topic.due.Sub(now)
		s.homes[nil] = h
		s.houseLocked("a", topic, nil)
		return pause
	}
	for range 20 {
		lost()
	}
	if pause := lost(); pause < 400*time.Millisecond {
		t.Errorf("a pause of %v behind 20 failures", pause)
	}
	h.since = time.Now().Add(-2 * soundAfter)
	if pause := lost(); pause > 200*time.Millisecond {
		t.Errorf("a pause of %v behind a session that has lasted", pause)
	}
}

// What nobody listens to any more is not subscribed to again by the next session, which would not end that.
func TestSubscriber_DesertedEndWithTheSession(t *testing.T) {
	s, h, topic := deaf(t)
	s.remove("a", topic.listeners[0])
	s.ended(h, io.EOF)
	if n := s.subscriptions(); n != 0 {
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
