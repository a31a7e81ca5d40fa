package redistest

import (
	"crypto/sha1"
	"errors"
	"fmt"
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
	WantFailure(t, "the count would be wrong", func(tb testing.TB) {
		p.tb = tb
		p.Count(Command("get"))
	})
}

func TestProxy_HoldFirstRequest(t *testing.T) {
	s, p, c := through(t)
	other := dial(t, p.Addr(), s.Password())
	gate := p.HoldFirstRequest(Command("set"))
	c.send("SET", "k", "1")
	gate.Wait(t)
	c.send("APPEND", "k", "2") // waits behind it
	Want(t, other.do("APPEND", "k", "0"), "1", "APPEND of another connection = %s, want 1")
	if got := other.do("SET", "x", "1"); got != "OK" { // the gate holds only one
		t.Errorf("SET = %s", got)
	}
	c.wantSilence()
	gate.Release()
	gate.Release()
	c.wantRead("OK", "2")
	Want(t, get(t, s, "k"), "12", "k = %s, want 12")
}

// A copy of a request that comes over another connection waits at the same gate.
func TestProxy_HoldRequest(t *testing.T) {
	s, p, c := through(t)
	copied, other := dial(t, p.Addr(), s.Password()), dial(t, p.Addr(), s.Password())
	gate := p.HoldRequest(Command("incr"))
	c.send("INCR", "n")
	gate.Wait(t)
	copied.send("INCR", "n")
	if got := other.do("SET", "x", "1"); got != "OK" { // does not match
		t.Errorf("SET = %s", got)
	}
	copied.wantSilence()
	Want(t, get(t, s, "n"), "", "n = %s while held")
	gate.Release()
	Eventually(t, Patience, "both executed", func() bool { return get(t, s, "n") == "2" })
	Want(t, other.do("INCR", "n"), "3", "INCR after Release = %s, want 3")
}

func TestProxy_HeldRequestArrivesAfterItsSenderLeft(t *testing.T) {
	leave := map[string]func(*Proxy, *testConn){
		"client closes": func(_ *Proxy, c *testConn) { c.Close() },
		"cut":           func(p *Proxy, c *testConn) { p.Cut(); c.wantEOF() },
	}
	for name, leave := range leave {
		t.Run(name, func(t *testing.T) {
			s, p, c := through(t)
			gate := p.HoldFirstRequest(Command("incr"))
			c.send("INCR", "n")
			gate.Wait(t)
			leave(p, c)
			Want(t, get(t, s, "n"), "", "n = %s while held")
			gate.Release()
			Eventually(t, Patience, "late INCR executed", func() bool { return get(t, s, "n") == "1" })
		})
	}
}

func TestProxy_HoldFirstReply(t *testing.T) {
	s, p, c := through(t)
	gate := p.HoldFirstReply(Command("incr"))
	c.send("INCR", "n")
	gate.Wait(t)
	Want(t, get(t, s, "n"), "1", "n = %s while the reply is held, want 1")
	c.send("INCR", "n")
	c.wantSilence()
	gate.Release()
	c.wantRead("1", "2")

	unused := p.HoldFirstReply(Command("incr"))
	unused.Release() // and so it must not stand before the next rule
	p.LoseReply(Command("incr"), 1)
	c.send("INCR", "n")
	c.wantEOF()
}

func TestProxy_HoldReply(t *testing.T) {
	s, p, c := through(t)
	copied, other := dial(t, p.Addr(), s.Password()), dial(t, p.Addr(), s.Password())
	gate := p.HoldReply(Command("incr"))
	c.send("INCR", "n")
	gate.Wait(t)
	copied.send("INCR", "n")
	Eventually(t, Patience, "both executed", func() bool { return get(t, s, "n") == "2" })
	copied.wantSilence()
	gate.Release()
	c.wantRead("1")
	copied.wantRead("2")
	Want(t, other.do("INCR", "n"), "3", "INCR after Release = %s, want 3")
}

// What a gate holds stays held; what would come to it later passes.
func TestProxy_HealLeavesWhatAGateHolds(t *testing.T) {
	s, p, c := through(t)
	gate := p.HoldRequest(Command("incr"))
	c.send("INCR", "n")
	gate.Wait(t)
	p.Heal()
	Want(t, dial(t, p.Addr(), s.Password()).do("INCR", "n"), "1", "INCR after Heal = %s, want 1")
	c.wantSilence()
	gate.Release()
	c.wantRead("2")
}

func TestCalls_OfWhatIsMerged(t *testing.T) {
	for _, tc := range []struct{ command, want string }{
		{"evalsha f 4 a b c d 2 =-= x z y1 y2", "[[evalsha f 2 a b x y1 z] [evalsha f 2 c d x y2 z]]"},
		{"EVAL text 2 a a 1 - 1 2", "[[EVAL text 1 a 1] [EVAL text 1 a 2]]"},
		{"evalsha f 1 a 30000 x", "[[evalsha f 1 a 30000 x]]"},
		{"evalsha f 3 a b c 2 = x", "[[evalsha f 3 a b c 2 = x]]"},
		{"evalsha f 2 a b 1 - x", "[[evalsha f 2 a b 1 - x]]"},
		{"get a", "[]"},
	} {
		if got := fmt.Sprint(Calls(strings.Fields(tc.command))); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.command, got, tc.want)
		}
	}
}

// A script is known by its digest once its text has been seen.
func TestScriptName(t *testing.T) {
	for _, tc := range []struct{ script, want string }{
		{"-- holdfast join\nreturn 1", "join"}, {"-- holdfast join, many\nreturn 2", "join"}, {"return 'join'", ""},
	} {
		sum := fmt.Sprintf("%x", sha1.Sum([]byte(tc.script)))
		Want(t, ScriptName([]string{"evalsha", sum, "0"}), "", "before its text: %q")
		Want(t, ScriptName([]string{"eval", tc.script, "0"}), tc.want, "%q, want %q")
		Want(t, ScriptName([]string{"evalsha", sum, "0"}), tc.want, "%q, want %q")
	}
}

// A rule for a call finds it among others.
func TestProxy_RulesFindMergedCalls(t *testing.T) {
	of := func(cmd []string) bool {
		keys, _, ok := ScriptCall(cmd)
		return ok && len(keys) == 1 && keys[0] == "b"
	}
	for command, want := range map[string]action{"evalsha f 2 a b 1 = x": loseReply, "evalsha f 2 a c 1 = x": forward} {
		if v, _ := judge([]*rule{{match: of, left: 1, verdict: verdict{action: loseReply}}}, strings.Fields(command)); v.action != want {
			t.Errorf("%s: action %v, want %v", command, v.action, want)
		}
	}
}
