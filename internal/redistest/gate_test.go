package redistest

import "testing"

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
