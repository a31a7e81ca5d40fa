package holdfast

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// The patience of a place in the queue ends, and before the scheduler comes to say so the
// lock has been granted: the claim is a hold now, with a deadline of its own.
func TestExpire_OfAPlaceWhoseLockWasGranted(t *testing.T) {
	m, err := New(redistest.Start(t).Client(t))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(context.Background())
	lease, err := m.FairMutex("a").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m.expire(lease.hold)
	if err := lease.Err(); err != nil {
		t.Error(err)
	}
	if err := lease.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

// listening is told when a channel is heard.
type listening chan struct{}

func (l listening) heard(string) {}
func (l listening) subscribed()  { l <- struct{}{} }

// Redis keeps a queue for at least five minutes. However seldom a waiter wants to ask, it
// asks more often than that.
func TestExpire_OfTheQueueIsOutrun(t *testing.T) {
	m, err := New(redistest.Start(t).Client(t), WithPollInterval(time.Hour), WithFairPatience(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(context.Background())
	inbox := make(listening, 1)
	m.subscriber.add(m.inbox.channel, inbox)
	<-inbox
	e := &entry{m: m}
	for _, ttl := range []time.Duration{-1, time.Hour} {
		for range 100 { // some of it is by chance
			if d := e.pollAfter(ttl); d > 150*time.Second {
				t.Fatalf("asks again after %v, behind a TTL of %v", d, ttl)
			}
		}
	}
}
