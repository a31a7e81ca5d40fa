package redistest

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// through returns a server, a proxy in front of it and a connection through it.
func through(t *testing.T) (*Server, *Proxy, *testConn) {
	t.Helper()
	s := Start(t)
	p := s.Proxy(t)
	return s, p, dial(t, p.Addr(), s.Password())
}

func TestProxy_LoseReply(t *testing.T) {
	s, p, c := through(t)
	p.LoseReply(Command("incr"), 1)
	c.send("incr", "n")
	c.wantEOF()
	Want(t, get(t, s, "n"), "1", "n = %s, want 1: executed once")
	Want(t, dial(t, p.Addr(), s.Password()).do("INCR", "n"), "2", "INCR after the rule is used up = %s, want 2")
}

// An answer of the proxy's own comes in its place, and the server has not heard of the request.
func TestProxy_Answer(t *testing.T) {
	s, p, _ := through(t)
	rdb := p.Client(t)
	for _, text := range []string{"upstream failure", "", "ERR a\r\nb", "ERR " + strings.Repeat("x", 64<<10)} {
		s.Admin().Del(t.Context(), "n")
		rdb.Incr(t.Context(), "n")
		p.AnswerError(All(Command("incr"), Containing("second")), 1, text)
		pipe := rdb.Pipeline()
		first, second, third := pipe.Incr(t.Context(), "n"), pipe.Incr(t.Context(), "second"), pipe.Incr(t.Context(), "n")
		_, _ = pipe.Exec(t.Context())
		if first.Val() != 2 || third.Val() != 3 || second.Err() == nil || second.Err().Error() != text {
			t.Errorf("%v, %v, %v; want 2, %.20q, 3", first, second.Err(), third, text)
		}
	}
	Want(t, s.Admin().Exists(t.Context(), "second").Val(), 0, "the server has executed what the proxy answered")
}

func TestProxy_BreakReply(t *testing.T) {
	s, p, c := through(t)
	p.BreakReply(Command("incr"), 1)
	c.send("incr", "n")
	if _, err := c.replies.reply(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v, want half a reply", err)
	}
	Want(t, get(t, s, "n"), "1", "n = %s, want 1: executed once")
}

func TestProxy_LoseReplyInAPipeline(t *testing.T) {
	s, p, c := through(t)
	p.LoseReply(Containing("b"), 1)
	c.send("INCR", "a")
	c.send("INCR", "b")
	c.wantRead("1")
	c.wantEOF()
	Want(t, get(t, s, "b"), "1", "b = %s, want 1")

	c = dial(t, p.Addr(), s.Password())
	p.LoseReply(Command("exec"), 1)
	c.send("MULTI")
	c.send("INCR", "a")
	c.send("EXEC")
	c.wantRead("OK", "QUEUED")
	c.wantEOF()
	Want(t, get(t, s, "a"), "2", "a = %s, want 2: the transaction was executed")
}

func TestProxy_SwallowReply(t *testing.T) {
	s, p, c := through(t)
	p.SwallowReply(Command("incr"), 1)
	c.send("INCR", "n")
	Eventually(t, Patience, "INCR executed", func() bool { return get(t, s, "n") == "1" })
	c.wantSilence()
	c.send("INCR", "n") // must not be answered in place of the first
	Eventually(t, Patience, "second INCR executed", func() bool { return get(t, s, "n") == "2" })
	c.wantSilence()
	Want(t, dial(t, p.Addr(), s.Password()).do("INCR", "n"), "3", "INCR on another connection = %s, want 3")
	p.Cut()
	c.wantEOF()
}

func TestProxy_LoseRequest(t *testing.T) {
	s, p, c := through(t)
	p.LoseRequest(All(Command("INCR"), Containing("n")), 2)
	c.send("INCR", "a")
	c.send("INCR", "n")
	c.send("INCR", "a")
	c.wantRead("1")
	c.wantEOF()
	c = dial(t, p.Addr(), s.Password())
	c.send("INCR", "n")
	c.wantEOF()
	c = dial(t, p.Addr(), s.Password())
	gate := p.HoldFirstReply(Containing("a"))
	p.LoseRequest(Containing("n"), 1)
	c.send("INCR", "a")
	gate.Wait(t)
	c.send("INCR", "n")
	c.wantSilence() // the closing waits for the reply before it
	gate.Release()
	c.wantRead("2")
	c.wantEOF()
	if a, n := get(t, s, "a"), get(t, s, "n"); a != "2" || n != "" {
		t.Errorf("a = %q, n = %q, want 2 and nothing", a, n)
	}
	Want(t, p.Count(Containing("n")), 0, "%d requests forwarded, want 0")
}

func TestProxy_HealEndsEverything(t *testing.T) {
	s, p, _ := through(t)
	p.LoseReply(Command("incr"), 100)
	gate := p.HoldFirstReply(Command("incr"))
	p.Refuse(true)
	p.BlackHole(true)
	p.Freeze(true)
	p.Heal()
	if !gate.isReleased() {
		t.Errorf("a gate not reached is still closed")
	}
	Want(t, dial(t, p.Addr(), s.Password()).do("INCR", "n"), "1", "INCR = %s, want 1")
}

func TestProxy_CountsAndRecords(t *testing.T) {
	_, p, c := through(t)
	c.do("SET", "a", "1")
	c.do("SET", "b", "1")
	p.SwallowReply(Containing("b"), 1)
	c.do("GET", "a")
	c.send("get", "b")
	Eventually(t, Patience, "GET b forwarded", func() bool { return p.Count(Command("GET")) == 2 })
	Want(t, p.Count(All(Command("set"), Containing("a"))), 1, "%d SETs of a, want 1")
	p.Record()
	c.send("GET", "c", "d")
	Eventually(t, Patience, "GET c forwarded", func() bool { return len(p.Commands()) == 1 })
	Want(t, strings.Join(p.Commands()[0], " "), "GET c d", "recorded %q")
	for range maxLog + 1 {
		p.record([]string{"GET"})
	}
	defer func() { p.tb = t }()
	wantFailure(t, "the count would be wrong", func(tb testing.TB) {
		p.tb = tb
		p.Count(Command("get"))
	})
}
