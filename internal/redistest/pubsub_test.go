package redistest

import (
	"fmt"
	"testing"
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
		Want(t, s.NumSub("b"), 1, "NumSub(b) = %d while the confirmation is held, want 1")
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
