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
	Must(t, err)
	defer fresh.Close()
	lost := &testConn{fresh, t}
	lost.send("AUTH", s.Password())
	lost.wantSilence()
	p.BlackHole(false)

	c.send("INCR", "n")
	c.wantSilence() // it lost bytes and stays dead
	lost.wantSilence()
	Want(t, idle.do("INCR", "n"), "1", "INCR of a connection that lost nothing = %s, want 1")
	Want(t, dial(t, p.Addr(), s.Password()).do("INCR", "n"), "2", "INCR of a new connection = %s, want 2")
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
	Want(t, get(t, s, "n"), "", "n = %s, want nothing executed")
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
	Must(t, err)
	defer conn.Close()
	fresh := &testConn{conn, t}
	fresh.send("AUTH", s.Password())
	c.wantSilence()
	fresh.wantSilence()
	Want(t, get(t, s, "n"), "1", "n = %s while frozen, want 1")
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
	Want(t, dial(t, p.Addr(), s.Password()).do("INCR", "n"), "1", "INCR of a new connection = %s, want 1")
	c.wantSilence()
}
