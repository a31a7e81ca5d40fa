package redistest

import (
	"strings"
	"testing"
)

func TestProxy_BlackHole(t *testing.T) {
	s, p, c := through(t)
	idle := dial(t, p.Addr(), s.Password())
	p.BlackHole(true)
	c.send("INCR", "n")
	c.wantSilence()
	fresh, err := dialRaw(p.Addr(), "", Patience) // accepted
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	lost := &testConn{fresh, t}
	lost.send("AUTH", s.Password())
	lost.wantSilence()
	p.BlackHole(false)

	c.send("INCR", "n")
	c.wantSilence() // it lost bytes and stays dead
	lost.wantSilence()
	if got := idle.do("INCR", "n"); got != "1" {
		t.Errorf("INCR of a connection that lost nothing = %s, want 1", got)
	}
	if got := dial(t, p.Addr(), s.Password()).do("INCR", "n"); got != "2" {
		t.Errorf("INCR of a new connection = %s, want 2", got)
	}
}

func TestProxy_BlackHoleEatsWhatAGateReleases(t *testing.T) {
	s, p, c := through(t)
	gate := p.HoldFirstRequest(Command("incr"))
	c.send("INCR", "n")
	gate.Wait(t)
	p.BlackHole(true)
	gate.Release()
	c.send("INCR", "n")
	c.wantSilence()
	p.BlackHole(false)
	c.wantSilence()
	if got := get(t, s, "n"); got != "" {
		t.Errorf("n = %s, want nothing executed", got)
	}
}

func TestProxy_BlackHoleHidesClosings(t *testing.T) {
	s, p, c := through(t)
	quiet := dial(t, p.Addr(), s.Password())
	id, quietID := c.do("CLIENT", "ID"), quiet.do("CLIENT", "ID")
	listed := func() bool {
		return strings.Contains(s.Admin().ClientList(t.Context()).Val(), "id="+id+" ")
	}
	p.BlackHole(true)
	c.Close()
	s.Admin().ClientKillByFilter(t.Context(), "ID", quietID)
	quiet.wantSilence()
	if !listed() {
		t.Errorf("the server learned of the client's closing")
	}
	p.BlackHole(false)
	Eventually(t, Patience, "server learns of the closing", func() bool { return !listed() })
	quiet.wantSilence() // a half-open connection learns nothing
}

func TestProxy_Freeze(t *testing.T) {
	s, p, c := through(t)
	gate := p.HoldFirstReply(Command("incr"))
	c.send("INCR", "n")
	gate.Wait(t)
	p.Freeze(true)
	gate.Release()
	c.send("INCR", "n")
	conn, err := dialRaw(p.Addr(), "", Patience)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fresh := &testConn{conn, t}
	fresh.send("AUTH", s.Password())
	c.wantSilence()
	fresh.wantSilence()
	if got := get(t, s, "n"); got != "1" {
		t.Errorf("n = %s while frozen, want 1", got)
	}
	p.Freeze(false)
	c.wantRead("1", "2")
	fresh.wantRead("OK")
}

// What a NAT forgets: the connections that are there swallow everything and stay open, new ones work.
func TestProxy_Forget(t *testing.T) {
	s, p, c := through(t)
	p.Forget()
	c.send("INCR", "n")
	c.wantSilence()
	if got := dial(t, p.Addr(), s.Password()).do("INCR", "n"); got != "1" {
		t.Errorf("INCR of a new connection = %s, want 1", got)
	}
	c.wantSilence()
}
