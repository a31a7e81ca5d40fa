package redistest

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// subscriber is a raw connection through a proxy, speaking RESP2 or RESP3.
func subscriber(t *testing.T, s *Server, p *Proxy, protocol int) *testConn {
	t.Helper()
	c := dial(t, p.Addr(), s.Password())
	if protocol == 3 {
		c.do("HELLO", "3")
	}
	return c
}

func eachProtocol(t *testing.T, test func(t *testing.T, s *Server, p *Proxy, protocol int)) {
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprint("RESP", protocol), func(t *testing.T) {
			s := Start(t)
			test(t, s, s.Proxy(t), protocol)
		})
	}
}

func TestProxy_PubSubWithGoRedis(t *testing.T) {
	eachProtocol(t, func(t *testing.T, s *Server, p *Proxy, protocol int) {
		rdb := p.ClientWith(t, func(o *redis.Options) { o.Protocol = protocol })
		sub := rdb.Subscribe(t.Context(), "a", "b")
		defer sub.Close()
		for range 2 {
			if _, err := sub.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, ch := range []string{"a", "b"} {
			if n := rdb.Publish(t.Context(), ch, "to "+ch).Val(); n != 1 {
				t.Errorf("%d receivers on %s, want 1", n, ch)
			}
			if m, err := sub.ReceiveMessage(t.Context()); err != nil || m.Payload != "to "+ch {
				t.Errorf("received %v, %v", m, err)
			}
		}
		if err := sub.Ping(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		if m, err := sub.Receive(t.Context()); err != nil {
			t.Errorf("ping: %v, %v", m, err)
		}
	})
}

// Messages among the replies must not shift which reply a rule hits.
func TestProxy_RulesHitRepliesAmongMessages(t *testing.T) {
	eachProtocol(t, func(t *testing.T, s *Server, p *Proxy, protocol int) {
		c := subscriber(t, s, p, protocol)
		c.send("SUBSCRIBE", "ch")
		c.wantRead("subscribe ch 1")
		pong := map[int]string{2: "pong ", 3: "PONG"}[protocol]

		gate := p.HoldFirstReply(Command("ping"))
		s.Admin().Publish(t.Context(), "ch", "before")
		c.wantRead("message ch before")
		c.send("PING")
		gate.Wait(t)
		s.Admin().Publish(t.Context(), "ch", "behind")
		c.wantSilence()
		gate.Release()
		c.wantRead(pong, "message ch behind")

		p.LoseReply(Command("ping"), 1)
		s.Admin().Publish(t.Context(), "ch", "last")
		c.wantRead("message ch last")
		c.send("PING")
		c.wantEOF()
		Eventually(t, Patience, "subscription gone", func() bool { return s.NumSub("ch") == 0 })
	})
}

func TestProxy_RulesHitConfirmations(t *testing.T) {
	eachProtocol(t, func(t *testing.T, s *Server, p *Proxy, protocol int) {
		c := subscriber(t, s, p, protocol)
		gate := p.HoldFirstReply(Containing("b"))
		c.send("SUBSCRIBE", "a")
		c.send("SUBSCRIBE", "b")
		gate.Wait(t)
		if got := s.NumSub("b"); got != 1 {
			t.Errorf("NumSub(b) = %d while the confirmation is held, want 1", got)
		}
		c.wantRead("subscribe a 1")
		c.wantSilence()
		gate.Release()
		c.wantRead("subscribe b 2")

		p.LoseRequest(Command("unsubscribe"), 1)
		c.send("UNSUBSCRIBE", "a")
		c.wantEOF()

		c = subscriber(t, s, p, protocol)
		c.send("SUBSCRIBE", "a")
		c.wantRead("subscribe a 1")
		p.LoseReply(Command("subscribe"), 1)
		c.send("SUBSCRIBE", "a")
		c.wantEOF()

		c = subscriber(t, s, p, protocol)
		p.SwallowReply(Command("subscribe"), 1)
		c.send("SUBSCRIBE", "c")
		Eventually(t, Patience, "subscribed", func() bool { return s.NumSub("c") == 1 })
		s.Admin().Publish(t.Context(), "c", "unheard")
		c.wantSilence()
	})
}

func TestProxy_SubscriberInTheBlackHole(t *testing.T) {
	eachProtocol(t, func(t *testing.T, s *Server, p *Proxy, protocol int) {
		c := subscriber(t, s, p, protocol)
		c.send("SUBSCRIBE", "ch")
		c.wantRead("subscribe ch 1")

		p.Freeze(true)
		s.Admin().Publish(t.Context(), "ch", "late")
		c.wantSilence()
		p.Freeze(false)
		c.wantRead("message ch late")

		p.BlackHole(true)
		if n := s.Admin().Publish(t.Context(), "ch", "lost").Val(); n != 1 {
			t.Errorf("%d receivers, want the half-open one", n)
		}
		c.wantSilence()
		p.BlackHole(false)
		s.Admin().Publish(t.Context(), "ch", "after")
		c.wantSilence()
		c.Close()
		Eventually(t, Patience, "subscription gone", func() bool { return s.NumSub("ch") == 0 })
	})
}

// go-redis must come back by itself when its subscription is cut.
func TestProxy_CutSubscriberReconnects(t *testing.T) {
	s := Start(t)
	p := s.Proxy(t)
	sub := p.Client(t).Subscribe(t.Context(), "ch")
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	deadline := time.Now().Add(Patience)
	for {
		m, err := sub.Receive(t.Context())
		if s, ok := m.(*redis.Subscription); ok && s.Kind == "subscribe" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("not subscribed again: %v", err)
		}
	}
	if got := p.Count(Command("subscribe")); got != 2 {
		t.Errorf("%d SUBSCRIBE, want 2", got)
	}
}
